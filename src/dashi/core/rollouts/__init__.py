"""The rollout: blocks of steps, what comes back of them, which strategy they run by and what a step takes."""
