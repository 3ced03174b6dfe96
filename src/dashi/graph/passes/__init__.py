"""The passes of the compiler, one module each: frozen dataclasses whose fields are their options."""

__all__: list[str] = []
