from collections.abc import Iterable
from typing import Literal, final

Profile = Literal["default", "strict", "classic", "w3lib", "surt", "crawler-commons"]

@final
class Key:
    """What was made of one URL."""

    @property
    def key(self) -> str | None:
        """What to compare by; None if the URL was refused."""
    @property
    def fetch_url(self) -> str | None:
        """What to fetch; None if the URL was refused, or is none that a browser would fetch."""
    @property
    def rules(self) -> list[str]:
        """The rules that changed something on the way to the key."""
    @property
    def id(self) -> str:
        """What makes the keys; keys of two ids are not to be compared."""
    @property
    def error(self) -> str | None:
        """Why there is no key, for people."""
    @property
    def reason(self) -> str | None:
        """Why there is no key, in one word."""

def canon(url: str | bytes, profile: Profile = "default") -> Key:
    """The key of one URL. A URL that is refused raises nothing: see `Key.error`."""

def keys(urls: Iterable[str | bytes], profile: Profile = "default") -> list[str | None]:
    """The keys of many URLs, None for those refused. Other threads run meanwhile."""

def fingerprints(urls: Iterable[str | bytes], key: bytes, profile: Profile = "default") -> bytes:
    """The fingerprints of the keys of many URLs under a secret of 16 bytes, 16 bytes each in their order;
    16 zero bytes for those refused. Other threads run meanwhile.
    """
