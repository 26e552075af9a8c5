"""A file system with the rules of an object store, such as S3: there are no folders."""

from typing import Any, ClassVar

from fsspec import AbstractFileSystem


class ObjectStore(AbstractFileSystem):  # type: ignore[misc]
    """Objects of this process, for all instances; ranges of bytes are keywords, as in s3fs."""

    protocol = "store"
    objects: ClassVar[dict[str, bytes]] = {}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        prefix = f"{self._strip_protocol(path)}/"
        found = [name for name in self.objects if name.startswith(prefix)]
        if not found:
            raise FileNotFoundError(path)
        return [self.info(name) for name in found] if detail else found

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        if name not in self.objects:
            raise FileNotFoundError(path)
        return {"name": name, "size": len(self.objects[name]), "type": "file"}

    def cat_file(
        self,
        path: str,
        version_id: str | None = None,
        start: int | None = None,
        end: int | None = None,
        **_: Any,
    ) -> bytes:
        assert version_id is None
        data = self.objects[self._strip_protocol(path)]
        if not data and (start, end) != (None, None):
            raise OSError("The requested range is not satisfiable")
        return data[start:end]

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        self.objects[self._strip_protocol(path)] = value

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        self.objects[self._strip_protocol(path2)] = self.objects[self._strip_protocol(path1)]

    def rm_file(self, path: str) -> None:
        del self.objects[self._strip_protocol(path)]

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Do nothing: an object store has no folders."""
