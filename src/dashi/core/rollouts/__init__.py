"""The rollout: blocks of steps, what comes back of them, which way they run and what a step takes."""
