"""The command ``unrolled`` without its start: a server that has loaded what commands load, and forks for each call.

``python preloaded.py SOCKET`` serves until its input ends; ``client`` writes programs that ask it: ``unrolled``,
and a ``python`` for scripts. A call has its own process, arguments, folder, environment and streams; it only need not
start Python, torch and numba anew.
"""

from __future__ import annotations

import array
import json
import os
import runpy
import socket
import sys
import threading
from pathlib import Path

CLIENT = """#!{python} -IS
import json, os, socket, sys, array
with socket.socket(socket.AF_UNIX) as server:
    server.connect({place!r})
    asked = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    server.sendmsg([len(asked).to_bytes(8, "big")], streams)
    server.sendall(asked)
    code = server.recv(1)
sys.exit(code[0] if code else "the server of commands ended")
"""


def client(folder: Path, place: str) -> None:
    """Write ``folder/unrolled`` and ``folder/python``, which are run by the server at the socket ``place``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("unrolled", "python"):
        (folder / name).write_text(CLIENT.format(python=sys.executable, place=place), encoding="utf-8")
        (folder / name).chmod(0o755)


def load() -> None:
    """What most commands load before they do anything; no thread is started."""
    import jiwer  # noqa: F401
    import sacrebleu  # noqa: F401
    import torch

    import unrolled.cli.main
    import unrolled.models
    import unrolled.pipeline
    import unrolled.runs  # noqa: F401
    from unrolled.layers.kernels import compiled

    compiled.tiles_found()
    compiled.panels_found()
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # loads what compiles, which takes longest


def serve(place: str) -> None:
    """Answer calls, one after the other or several at a time, until standard input ends."""
    threading.Thread(target=lambda: (os.read(0, 1), os._exit(0)), daemon=True).start()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen()
        print("ready", flush=True)
        while True:
            asking, _ = server.accept()
            if not os.fork():
                server.close()
                _answer(asking)
            asking.close()
            while True:  # those that have ended
                try:
                    if os.waitpid(-1, os.WNOHANG) == (0, 0):
                        break
                except ChildProcessError:
                    break


def _answer(asking: socket.socket) -> None:
    """Run a call in a process of its own, and say how it ended."""
    head, ancillary, _, _ = asking.recvmsg(8, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i")
    streams.frombytes(ancillary[0][2])
    length, asked = int.from_bytes(head, "big"), b""
    while len(asked) < length:
        asked += asking.recv(length - len(asked))
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        asking.sendall(bytes([code if code >= 0 else 128 - code]))
        os._exit(0)
    asking.close()
    words, folder, environment = json.loads(asked)
    for stream, target in zip(streams, (0, 1, 2), strict=True):
        os.dup2(stream, target)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    script = Path(words[0]).name == "python"
    sys.argv = words[1:] if script else ["unrolled", *words[1:]]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if script:
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        from unrolled.cli.main import main

        main()
    sys.exit(0)


if __name__ == "__main__":
    load()
    serve(sys.argv[1])
