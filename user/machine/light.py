# SPDX-License-Identifier: GPL-2.0-only
"""What of contextlib, signal and socket each run takes.

These modules import others (enum, collections, functools, …), which together take as long as the interpreter's own
start. CPython's modules below them are whole without.
"""
import _signal as signal
import _socket
import struct


class suppress:
    def __init__(self, *errors):
        self.errors = errors

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, self.errors)


class Context:
    """That of a generator which yields once."""

    def __init__(self, generator):
        self.generator = generator

    def __enter__(self):
        return next(self.generator)

    def __exit__(self, kind, error, trace):
        if kind is None:
            next(self.generator, None)
            return False
        try:
            self.generator.throw(error)
        except StopIteration:
            return True
        except BaseException as other:
            if other is not error:
                raise
        return False


def contextmanager(function):
    return lambda *given: Context(function(*given))


def name_of_signal(number):
    import signal as named

    return named.Signals(number).name


def socketpair():
    return _socket.socketpair()


def send_fds(to, parts, fds):
    to.sendmsg(parts, [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))])
