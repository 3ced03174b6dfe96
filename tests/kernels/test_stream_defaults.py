"""What kernels declare for the stream scheduler."""

from __future__ import annotations

from dashi import kernels

OBSERVERS = {
    *(name for name in kernels.names() if name.startswith("reduce_")),
    "defect_local", "defect_reduce", "hash_state", "qfeat", "scale_counts", "state_metrics", "ternary_census",
    "ternary_defect", "ternary_popcount",
    "trit_counts", "colour_map", "image_diff", "nv12_to_rgba", "sheet_expand_fade", "write_image",
}  # fmt: skip


def test_kernels_whose_results_no_chain_goes_on_from_are_observers() -> None:
    assert {name for name in kernels.names() if kernels.get(name).stream.io_class == "OBSERVER"} == OBSERVERS


def test_the_kernels_of_codes_are_of_class_pq() -> None:
    coded = {name for name in kernels.names() if kernels.get(name).stream.io_class == "PQ"}
    assert coded > {"pq_pack_bits", "pq_unpack_bits", "pq_lut_build", "description_length"}


def test_depths_come_from_configurations() -> None:
    # A kernel does not know where in a chain it stands: whoever makes one that does, declares it.
    assert {(k.stream.depth_in, k.stream.depth_out) for k in map(kernels.get, kernels.names())} == {(0, 0)}
