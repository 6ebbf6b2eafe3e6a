# Copyright (c) 2026 gpunode.hygiene contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry out what was planned: own files, grub.cfg by update-grub, the environment block by grub-editenv. Whatever fails leaves all as found."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Mapping, Optional, Sequence

from ..._model import HygieneError
from ..apt.lock import package_lock
from ..files import read_text, remove, sync_folder, write_atomic
from ..run import Completed, run
from . import deadman
from .facts import NEXT_ENTRY
from .menu import GRUB_CFG, GRUBENV

_UPDATE_TIMEOUT = 900.0
_TOOL_TIMEOUT = 60.0
# grub-mkconfig leaves it behind when it fails.
_NEW_CFG = f"{GRUB_CFG}.new"


def runs_systemd() -> bool:
    """Whether systemd is the host's init (sd_booted(3))."""
    return os.path.isdir("/run/systemd/system")


@contextmanager
def alone(timeout: float) -> Iterator[None]:
    """Hold dpkg's frontend lock: kernel packages run update-grub, and a second run of this module takes the same lock.

    :param timeout: seconds to wait.
    :raises HygieneError: when the wait was in vain.
    """
    lock = package_lock(timeout, write=True)
    try:
        lock.__enter__()
    except HygieneError as error:
        raise HygieneError(
            error.seen,
            "Packages run update-grub while they are installed, which must not happen at the same time; nothing was changed",
            "Wait until that program has ended, then run the task again",
        ) from None
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


@contextmanager
def restoring(paths: Sequence[str]) -> Iterator[None]:
    """On any failure put the files back as they were: text, mode, link or absence."""
    kept = {path: _keep(path) for path in paths}
    try:
        yield
    except BaseException:
        for path, found in kept.items():
            if _keep(path) != found:
                _restore(path, found)
        raise


def write_files(files: Mapping[str, Optional[str]]) -> None:
    """Write our files, or remove those whose text is None; only what differs is touched."""
    for path, text in files.items():
        if text is None:
            remove(path)
        elif read_text(path) != text:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            write_atomic(path, text, _mode(path))


def update_grub() -> None:
    """Write grub.cfg anew.

    :raises HygieneError: when update-grub fails.
    """
    there = os.path.lexists(_NEW_CFG)
    completed = run(["update-grub"], _UPDATE_TIMEOUT)
    if not completed.ok:
        if not there:
            remove(_NEW_CFG)
        raise _failed(completed, "The new default is not in grub.cfg; all files were put back as they were")


def check_script(text: str) -> None:
    """Let GRUB's own parser read a script.

    :raises HygieneError: when it finds a syntax error.
    """
    with tempfile.NamedTemporaryFile("w", prefix="gpunode-hygiene-", suffix=".cfg", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)
        stream.flush()
        completed = run(["grub-script-check", stream.name], _TOOL_TIMEOUT)
    if not completed.ok:
        raise _failed(completed, "custom.cfg with the trial entry would be no valid GRUB script, and would then define no entry at all")


def set_next_entry(value: Optional[str]) -> None:
    """Set or unset the one-shot entry.

    :raises HygieneError: when grub-editenv fails.
    """
    action = ["unset", NEXT_ENTRY] if value is None else ["set", f"{NEXT_ENTRY}={value}"]
    completed = run(["grub-editenv", GRUBENV, *action], _TOOL_TIMEOUT)
    if not completed.ok:
        raise _failed(completed, "The one-shot entry could not be changed")
    handle = os.open(GRUBENV, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def enable_deadman() -> None:
    """Make every target of the dead-man unit want it."""
    for link in deadman.LINKS:
        os.makedirs(os.path.dirname(link), mode=0o755, exist_ok=True)
        _link(link, deadman.LINK_TARGET)


def disable_deadman() -> None:
    """Stop the dead-man unit and remove it: from then on nothing reboots the host.

    :raises HygieneError: when it cannot be stopped.
    """
    if runs_systemd():
        completed = run(["systemctl", "stop", deadman.UNIT], _TOOL_TIMEOUT)
        # 5: there is no such unit loaded.
        if completed.rc not in (0, 5):
            raise _failed(completed, "The timer that reboots out of the trial is still running")
    for link in deadman.LINKS:
        if os.path.islink(link):
            remove(link)
            _remove_if_empty(os.path.dirname(link))
    remove(deadman.UNIT_PATH)
    if runs_systemd():
        completed = run(["systemctl", "daemon-reload"], _TOOL_TIMEOUT)
        if not completed.ok:
            raise _failed(completed, "systemd still knows the unit of the trial, which is stopped and removed")


def trial_paths(custom_cfg: str) -> list[str]:
    """All that setting a trial touches."""
    return [custom_cfg, deadman.UNIT_PATH, *deadman.LINKS, GRUBENV]


def _failed(completed: Completed, why: str) -> HygieneError:
    return HygieneError(
        completed.summary,
        why,
        f"Run `{' '.join(completed.argv[:1])}` by hand and correct what it complains about, then run the task again",
        {"stderr": completed.err[-4000:]},
    )


def _keep(path: str) -> Optional[tuple[str, str, int]]:
    """(kind, content, mode) of a file or link; None when there is none."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode):
        return ("link", os.readlink(path), 0)
    return ("file", read_text(path) or "", stat.S_IMODE(found.st_mode))


def _restore(path: str, found: Optional[tuple[str, str, int]]) -> None:
    if found is None:
        remove(path)
        if path in deadman.LINKS:
            _remove_if_empty(os.path.dirname(path))
    elif found[0] == "link":
        _link(path, found[1])
    else:
        write_atomic(path, found[1], found[2])


def _link(path: str, target: str) -> None:
    if os.path.islink(path) and os.readlink(path) == target:
        return
    remove(path)
    os.symlink(target, path)
    sync_folder(os.path.dirname(path))


def _remove_if_empty(folder: str) -> None:
    if not os.listdir(folder):
        os.rmdir(folder)
        sync_folder(os.path.dirname(folder))


def _mode(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return 0o644
