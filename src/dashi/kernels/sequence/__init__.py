"""Sequences, step by step on the device: recurrent cells, selective scans, the gated delta rule."""
