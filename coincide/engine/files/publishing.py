"""Results that appear whole or not at all: where they may go, and how they take their place."""

from __future__ import annotations

import fcntl
import fnmatch
import os
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import PurePosixPath
from typing import Self

import pyarrow.parquet as pq
from pyarrow import fs

from coincide.engine.files.credentials import NOT_FOR_SPARK, Redactor, holds_settings, shown
from coincide.engine.files.finding import ParquetFiles, is_local, place_of
from coincide.engine.files.result_rows import writing
from coincide.model.errors import DataError, argument

SUCCESS = "_SUCCESS"
_RESULT = re.compile(r"\.?part-.*(\.parquet|\.crc)|\._SUCCESS\.crc|_SUCCESS")
"""What a join, or Spark, writes into the folder of an output; there are no subfolders."""
_ATTEMPTS = 3
"""Another run may publish to the same output between the two renames of this one."""

Check = Callable[[fs.FileInfo], None]


class Publication:
    """A file or a folder that is written aside and then takes its place, instead of an older one.

    All that a run makes lies in one hidden folder next to the output, ``.NAME.coincide-ID``, which goes
    when the run ends or, if that was killed, with the next run to the same output::

        new     what is written
        old     the older output, between the two renames that replace it: it goes back if the run
                ends there, or the next run puts it back
        lock    locked for as long as the run lives

    On file systems of this machine, and network mounts with locks, any number of runs may write to one
    output: none touches what another, living one has aside, and what is published last stays, whole.
    Where there are no locks (HDFS, object stores) one run at a time may.
    """

    def __init__(
        self, name: str, filesystem: fs.FileSystem, path: str, check: Check, is_folder: bool
    ) -> None:
        self.name, self.filesystem, self._is_folder = name, filesystem, is_folder
        self._has_locks = is_local(filesystem)
        # Next to what a link names, not next to the link.
        self.path = os.path.realpath(path) if self._has_locks else path.rstrip("/")
        self._parent, slash, last = self.path.rpartition("/")
        self._parent = self._parent or ("/" if slash else "")
        self._prefix = f".{last}.coincide-"
        self._check = check
        self._lock: int | None = None
        self._run = self._new_run()
        with self._writing():
            self._clear()
            self._check_place()

    def __enter__(self) -> Self:
        try:
            with self._writing():
                while not self._begin():
                    self._run = self._new_run()
                if self._is_folder:
                    self.filesystem.create_dir(self.aside)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # What cannot go now goes with the next run; users shall read what broke, not that.
        with suppress(OSError):
            self._settle(self._run)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def aside(self) -> str:
        """Where to write the file, or the files."""
        return f"{self._run}/new"

    def beside(self, name: str) -> str:
        """A further place to write, which goes when the run ends."""
        return f"{self._run}/{name}"

    def results(self) -> list[fs.FileInfo]:
        """The file that is aside, or the Parquet files."""
        if not self._is_folder:
            return [self.filesystem.get_file_info(self.aside)]
        return [info for info in self._listed(self.aside) if info.path.endswith(".parquet")]

    def rows(self) -> int:
        """Rows of what is aside, from the footers of the files."""
        rows = 0
        for info in self.results():
            with self.filesystem.open_input_file(info.path) as source:
                rows += pq.read_metadata(source).num_rows
        return rows

    def size(self) -> int:
        """Bytes of what is aside."""
        return sum(info.size for info in self.results())

    def publish(self, paths: Collection[str] | None = None) -> None:
        """Put what is aside in place, instead of an older output."""
        with self._writing():
            if not self._is_folder:
                return self._take_place()
            files = {info.path for info in self.results()} if paths is None else set(paths)
            self._keep(self.aside, files)
            with self.filesystem.open_output_stream(f"{self.aside}/{SUCCESS}"):
                pass
            self._take_place()
            # An attempt that was given up late may have begun a file meanwhile.
            self._keep(self.path, {SUCCESS, *files})

    def _keep(self, folder: str, paths: Collection[str]) -> None:
        """Remove all files of a folder but those of these names."""
        names = {PurePosixPath(path).name for path in paths}
        there = {info.base_name: info.path for info in self._listed(folder)}
        if not names <= there.keys():
            return  # another run has put its own folder here meanwhile
        for name in there.keys() - names:
            with suppress(FileNotFoundError):
                self.filesystem.delete_file(there[name])

    def _take_place(self) -> None:
        self._clear()  # a run may have been killed since this one began
        for attempt in range(1, _ATTEMPTS + 1):
            self._check_place()
            try:
                return self._replace()
            except OSError:
                if attempt == _ATTEMPTS:
                    raise

    def _replace(self) -> None:
        """Rename what is aside to the output; an older one goes, or stays if that fails."""
        there, old = self._type(self.path), f"{self._run}/old"
        if there != fs.FileType.NotFound and (self._is_folder or there == fs.FileType.Directory):
            self._remove(old)  # that of an attempt before
            self.filesystem.move(self.path, old)
        try:
            self.filesystem.move(self.aside, self.path)
        except BaseException:
            self._put_back(self._run)
            raise

    def _put_back(self, run: str) -> None:
        """Put what a run has taken away back in its place, unless something else is there."""
        old = f"{run}/old"
        if self._is_there(old) and not self._is_there(self.path):
            self.filesystem.move(old, self.path)

    def _settle(self, run: str) -> None:
        """Take away the folder of a run that has ended, its older output apart."""
        self._put_back(run)
        self._remove(run)

    def _clear(self) -> None:
        """Take away what killed runs have left, and put back what they have taken away."""
        for run in self._runs():
            with suppress(OSError), self._claimed(run) as is_dead:
                # An error: it is another user's, or someone else has just taken it away.
                if is_dead:
                    self._settle(run)

    @contextmanager
    def _claimed(self, run: str) -> Iterator[bool]:
        """Whether a run has ended; meanwhile no one else will think so."""
        if not self._has_locks:
            yield True
            return
        lock = lock_if_free(run)
        try:
            yield lock is not None
        finally:
            if lock is not None:
                os.close(lock)

    def _runs(self) -> list[str]:
        """The folders of other runs to this output."""
        names = re.compile(re.escape(self._prefix) + "[0-9a-f]{32}")
        selector = fs.FileSelector(self._parent, allow_not_found=True)
        try:
            there = self.filesystem.get_file_info(selector)
        except OSError:
            return []  # one may write here, but not look
        own = PurePosixPath(self._run).name
        return [i.path for i in there if names.fullmatch(i.base_name) and i.base_name != own]

    def _new_run(self) -> str:
        name = self._prefix + uuid.uuid4().hex
        return f"{self._parent.rstrip('/')}/{name}" if self._parent else name

    def _begin(self) -> bool:
        """Make this run's folder; False if another run has just taken it for that of a killed one."""
        self.filesystem.create_dir(self._run)
        if not self._has_locks:
            return True
        lock = None
        with suppress(FileNotFoundError):
            lock = lock_if_free(self._run)
        if lock is not None and not is_held(lock, self._run):
            os.close(lock)
            lock = None
        self._lock = lock
        return lock is not None

    def _check_place(self) -> None:
        there = self._info(self.path)
        if there.type != fs.FileType.NotFound:
            self._check(there)

    def _remove(self, path: str) -> None:
        kind = self._type(path)
        if kind == fs.FileType.Directory:
            self.filesystem.delete_dir(path)
        elif kind != fs.FileType.NotFound:
            self.filesystem.delete_file(path)

    def _is_there(self, path: str) -> bool:
        return self._type(path) != fs.FileType.NotFound

    def _type(self, path: str) -> fs.FileType:
        return self._info(path).type

    def _info(self, path: str) -> fs.FileInfo:
        try:
            return self.filesystem.get_file_info(path)
        except PermissionError as error:
            raise DataError(
                f"you have no permission to list {self.name}. Write to another place."
            ) from error

    def _listed(self, folder: str) -> list[fs.FileInfo]:
        return self.filesystem.get_file_info(fs.FileSelector(folder))

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self.name)


def foreign(filesystem: fs.FileSystem, folder: str) -> str | None:
    """The name of something in a folder, hidden or not, that no join wrote; None if there is nothing."""
    others = [
        info.base_name
        for info in filesystem.get_file_info(fs.FileSelector(folder))
        if info.type != fs.FileType.File or not _RESULT.fullmatch(info.base_name)
    ]
    return min(others, default=None)


_WITHOUT_RENAME = ("s3", "gcs")


class Output(Publication):
    """A file, or a folder of files, which are written aside, and then published.

    As a context manager: leaving it takes away what was not published.
    """

    def __init__(
        self,
        output: str | os.PathLike[str],
        overwrite: bool,
        inputs: Iterable[ParquetFiles] = (),
        *,
        is_folder: bool = True,
        replaces_files: bool = False,
    ) -> None:
        self._given, self._overwrite = os.fspath(output), overwrite
        self._replaces_files = replaces_files
        self.text = Redactor.of([self._given])(shown(self._given))
        filesystem, path = place_of("output", self._given)
        self._can_move_folders = filesystem.type_name not in _WITHOUT_RENAME
        for found in inputs:
            _check_apart(self.text, filesystem, path, found)
        if is_folder and not self._can_move_folders:
            raise DataError(
                f"the output {self.text} lies where folders cannot be renamed, so others could"
                " see half of it. Write to a local or HDFS folder and copy it, or write the"
                " DataFrame with Spark."
            )
        if self._can_move_folders:
            self._check_parent(filesystem, path)
        super().__init__(f"the output {self.text}", filesystem, path, self._check_old, is_folder)
        parent = os.path.dirname(self.path)
        if is_local(filesystem) and not os.access(parent, os.W_OK):
            raise DataError(
                f"you have no permission to write the output {self.text}. Write to another place."
            )

    @property
    def uri(self) -> str:
        """`aside` as Spark names it."""
        return self.uri_of(self.aside)

    def uri_of(self, path: str) -> str:
        """A path of this run as Spark names it."""
        if is_local(self.filesystem):
            return f"file://{path}"
        if holds_settings(self._given):
            raise DataError(f"{self.name} {NOT_FOR_SPARK}")
        parent = self._given.rstrip("/").rpartition("/")[0]
        return "/".join([parent, *PurePosixPath(path).parts[-2:]])

    def _check_parent(self, filesystem: fs.FileSystem, path: str) -> None:
        real = _real(filesystem, path)
        if not real.name:
            raise DataError(f"the output {self.text} does not name a file or folder. Give a name.")
        try:
            parent = filesystem.get_file_info(str(real.parent))
        except PermissionError as error:
            raise DataError(
                f"you have no permission to list the output {self.text}. Write to another place."
            ) from error
        if parent.type != fs.FileType.Directory:
            raise DataError(f"the folder of the output {self.text} does not exist. Make it first.")

    def _check_old(self, there: fs.FileInfo) -> None:
        """Refuse to replace what must not, or cannot be."""
        if there.type not in (fs.FileType.File, fs.FileType.Directory):
            raise DataError(
                f"the output {self.text} exists, and is neither a file nor a folder. Write to"
                " another place."
            )
        if there.type == fs.FileType.Directory and not self._can_move_folders:
            raise DataError(f"the output {self.text} is a folder. Name a file.")
        if not self._overwrite:
            raise DataError(
                f"the output {self.text} exists already. Write to another place, or pass"
                f" {argument('overwrite', True)} to replace it."
            )
        if there.type == fs.FileType.File:
            if not self._replaces_files:
                raise DataError(
                    f"the output {self.text} is a file. Name a folder, or remove the file."
                )
            return
        other = foreign(self.filesystem, there.path)
        if other is not None:
            raise DataError(
                f"the output {self.text} is a folder that holds {other}, which no join wrote."
                " Only what a join or Spark wrote is replaced (part-*.parquet, _SUCCESS). Remove"
                " the folder yourself, or write to another place."
            )


def _check_apart(text: str, filesystem: fs.FileSystem, path: str, found: ParquetFiles) -> None:
    """Refuse an output that is an input, or lies in one, or around one, or would be one next time."""
    if filesystem.type_name != found.filesystem.type_name:
        return
    side, out = found.side, _real(filesystem, path)
    files = [_real(filesystem, file) for file in found.paths]
    given = [place_of(side, word)[1] for word in found.words]
    folders = [_real(filesystem, one) for one in given]
    if out in (*folders, *files) or (is_local(filesystem) and _is_linked(out, files)):
        raise DataError(f"the output {text} is the {side} input. Write to another place.")
    if any(map(out.is_relative_to, folders)):
        raise DataError(f"the output {text} lies inside the {side} input. Write to another place.")
    if any(one.is_relative_to(out) for one in files):
        raise DataError(f"the {side} input lies inside the output {text}. Write to another place.")
    for word, pattern in zip(found.words, given, strict=True):
        if pattern not in found.paths and fnmatch.fnmatch(path, pattern):
            raise DataError(
                f"the output {text} matches the {side} input {shown(word)}. Write to another place."
            )


def _is_linked(path: PurePosixPath, others: list[PurePosixPath]) -> bool:
    """Whether a file of this machine is one of others by another name: hard links share no path."""
    if not os.path.exists(path):
        return False
    own = os.stat(path)
    return any(os.path.samestat(own, os.stat(other)) for other in others)


def _real(filesystem: fs.FileSystem, path: str) -> PurePosixPath:
    """A path as that of a publication, without links."""
    return PurePosixPath(os.path.realpath(path) if is_local(filesystem) else path)


_NAME = "lock"


def lock_if_free(folder: str) -> int | None:
    """Lock a run's folder."""
    lock = os.open(os.path.join(folder, _NAME), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:
        pass  # a mount without locks
    return lock


def is_held(lock: int, folder: str) -> bool:
    """Whether a descriptor has the file that others will look at, which may have been removed."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(os.path.join(folder, _NAME)))
    except FileNotFoundError:
        return False
