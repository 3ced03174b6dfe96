"""The ops of graphs: each is declared once, in the module of its family, with its inference, its definition in NumPy
and how devices run it. To add one: declare it there, and list it in that module's OPS."""

__all__: list[str] = []
