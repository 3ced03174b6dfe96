"""The truth about a run: where it was placed, its metrics document, dispatches that were counted."""

__all__: list[str] = []
