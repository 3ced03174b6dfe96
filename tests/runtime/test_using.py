"""Devices given as themselves or by name."""

from __future__ import annotations

from typing import Any

import pytest

import dashi
from dashi.errors import ClosedError, DeviceNotFoundError, InputError
from dashi.runtime import using_device


def test_device_given_by_name_is_opened_and_closed() -> None:
    with using_device("cpu") as device:
        assert device.info.spec == "cpu"
        device.require_open()
    with pytest.raises(ClosedError):
        device.require_open()


def test_device_given_as_itself_stays_open() -> None:
    with dashi.open("cpu") as device:
        with using_device(device) as same:
            assert same is device
        device.require_open()
    with pytest.raises(ClosedError), using_device(device):
        pass


@pytest.mark.parametrize("wrong", [None, 0, ["cpu"]])
def test_anything_else_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"Fix: pass dashi\.open"), using_device(wrong):
        pass
    with pytest.raises(DeviceNotFoundError), using_device("gpu"):
        pass
