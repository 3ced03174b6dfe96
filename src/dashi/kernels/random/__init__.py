"""Random numbers for graphs: each is drawn by its own name, whatever else is drawn."""
