"""Canonical keys of URLs: what to compare by, and what to fetch, kept apart.

>>> import tamis
>>> tamis.canon("HTTP://Example.com:80/?b=1&a=2").key
'http://example.com/?a=2&b=1'
>>> tamis.canon("example.com").error
'it has no scheme; write it out (https://…), or give a base'
>>> tamis.canon("example.com").reason
'scheme'
>>> tamis.keys(["http://e.com", b"http://e.com/#top", "no url"])
['http://e.com/', 'http://e.com/', None]
>>> len(tamis.fingerprints(["http://e.com", "no url"], bytes(16)))
32
>>> tamis.canon("http://e.com", profile="none")
Traceback (most recent call last):
ValueError: no profile is called "none"; there are strict, default, classic, w3lib, surt and crawler-commons
"""

from ._tamis import Key, canon, fingerprints, keys

__all__ = ["Key", "canon", "fingerprints", "keys"]
