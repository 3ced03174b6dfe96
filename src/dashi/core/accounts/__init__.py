"""The truth about where a run went: placement, metrics, dispatches that were counted."""
