"""Pictures of runs, and the page that shows them: one file that needs nothing else. Needs the extra `plot`."""
