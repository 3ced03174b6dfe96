"""The PQ codec: support and sign planes, ranks, product quantisation."""
