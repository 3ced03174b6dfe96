"""Demonstrations: the main job from seeds to a report (`main_job`), and a rollout that NumPy repeats (`wave`)."""
