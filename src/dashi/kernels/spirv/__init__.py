"""SPIR-V binaries: parsing, structure, reflection, the check against the ABI, and the portability lint."""

__all__: list[str] = []
