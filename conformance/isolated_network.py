"""Runs a function in a network that has only loopback, for programs that listen on every address.

Source: unshare(2), user_namespaces(7), netdevice(7).
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from ipaddress import IPv4Network
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, TypeVar

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1
_SET_ADDRESS, _SET_MASK = 0x8916, 0x891C
_REQUEST = struct.Struct("16sh14x")
"""An ifreq: the name of an interface, and its flags."""
_ADDRESS = struct.Struct("16sHH4s8x")
"""An ifreq: the name of an interface, and a sockaddr_in."""
T = TypeVar("T")


class NetworkError(Exception):
    """The system does not allow a network namespace."""


def isolated(work: Callable[[], T]) -> T:
    """Run a function in a child process with a network of its own, and return its result.

    Everything that the function starts is in the same network, and nothing outside can reach it.
    An exception that ends the caller sends SIGTERM to the child, and waits until it has exited.

    Raises:
        NetworkError: The system does not allow such a network.
        EOFError: The child was killed.
    """
    start = get_context("fork")
    receiver, sender = start.Pipe(duplex=False)
    child = start.Process(target=_child, args=(sender, work))
    try:
        child.start()
        sender.close()
        made, answer = receiver.recv()
    except BaseException:
        child.terminate()
        raise
    finally:
        child.join()
    if not made:
        raise NetworkError(answer)
    result: T = answer
    return result


def _child(sender: Connection, work: Callable[[], Any]) -> None:
    try:
        enter()
    except OSError as error:
        sender.send((False, f"this system allows no network namespace: {error}"))
        return
    sender.send((True, work()))


def enter() -> None:
    """Give this process a network of its own, and bring up its loopback.

    A user other than root first gets a user namespace. That requires a single thread.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NETWORK) != 0:
        if libc.unshare(_NEW_USER | _NEW_NETWORK) != 0:
            _raise("unshare")
        own = Path("/proc/self")
        (own / "setgroups").write_text("deny")
        (own / "uid_map").write_text(f"0 {user} 1")
        (own / "gid_map").write_text(f"0 {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = _REQUEST.pack(b"lo", 0)
        _, flags = _REQUEST.unpack(fcntl.ioctl(control, _GET_FLAGS, request))
        fcntl.ioctl(control, _SET_FLAGS, _REQUEST.pack(b"lo", flags | _UP))


def take_addresses(network: IPv4Network) -> None:
    """Make all addresses of a network those of this machine, as the kernel does for 127.0.0.0/8.

    Call it only in a network of its own: in any other it would hide real machines.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for call, address in (
            (_SET_ADDRESS, network.network_address),
            (_SET_MASK, network.netmask),
        ):
            request = _ADDRESS.pack(b"lo:0", socket.AF_INET, 0, address.packed)
            fcntl.ioctl(control, call, request)


def _raise(call: str) -> NoReturn:
    number = ctypes.get_errno()
    raise OSError(number, f"{call}: {os.strerror(number)}")
