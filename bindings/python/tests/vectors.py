"""Holds the package to the shared vectors, and to what its types promise."""

import ast
import doctest
import json
import pathlib
import sys
import threading

import tamis

HERE = pathlib.Path(__file__).resolve().parent
SECRET = bytes(range(16))


def raises(kind, call, *args):
    try:
        call(*args)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call.__name__}{args} raised no {kind.__name__}")


def check_vectors():
    lines = (HERE / "../../../testdata/urls/vectors.jsonl").read_text(encoding="utf-8").splitlines()
    by_profile = {}
    for case in map(json.loads, lines):
        by_profile.setdefault(case["profile"], []).append(case)
    for profile, cases in by_profile.items():
        inputs = [case["input"] for case in cases]
        for given in (inputs, [url.encode() for url in inputs]):
            made = tamis.keys(given, profile)
            assert made == [case["key"] for case in cases], profile
            prints = tamis.fingerprints(given, SECRET, profile)
            assert len(prints) == 16 * len(cases)
            for index, case in enumerate(cases):
                want = case["fingerprint"] or "00" * 16
                assert prints[16 * index : 16 * index + 16].hex() == want, case
        for case in cases:
            one = tamis.canon(case["input"], profile)
            assert (one.key, one.id) == (case["key"], case["id"]), case
            assert (one.error is None) == (one.key is not None), case
            assert (one.reason is None) == (one.key is not None), case
    return len(lines)


def check_faults():
    assert "str or bytes, not int" in raises(TypeError, tamis.canon, 7)
    assert "str or bytes, not NoneType" in raises(TypeError, tamis.keys, ["http://e.com", None])
    assert "a list of URLs" in raises(TypeError, tamis.keys, "http://e.com")
    assert "16 bytes, and has 3" in raises(ValueError, tamis.fingerprints, [], b"abc")
    raises(TypeError, tamis.fingerprints, [], "a" * 16)
    raises(ValueError, tamis.keys, [], "none")
    assert tamis.keys([]) == [] and tamis.fingerprints([], SECRET) == b""
    assert tamis.keys(url for url in ["http://e.com"]) == ["http://e.com/"]
    # A lone surrogate is one U+FFFD, as in browsers; a pair in two halves is its character.
    assert tamis.canon("http://e.com/\ud800").key == "http://e.com/%EF%BF%BD"
    assert tamis.canon("http://e.com/\ud83d\ude00").key == "http://e.com/%F0%9F%98%80"
    assert tamis.canon(b"http://e.com/\xff\x00").key is not None
    raises(AttributeError, setattr, tamis.canon("http://e.com"), "key", "x")
    assert repr(tamis.canon("http://e.com")) == 'Key(key="http://e.com/")'


def check_threads():
    """Batches in threads give what they give alone."""
    urls = [f"http://e.com/{index}?b&a" for index in range(100_000)]
    want = tamis.keys(urls)
    results = [None] * 4

    def work(place):
        results[place] = tamis.keys(urls)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == want for result in results)


def check_interpreter_is_free():
    """While a batch is made, another thread runs.

    No thread is made to give way here (the interval is longer than the test), so the main thread comes to
    see "in" without "out" only if the batch lets go. It may come too late for one batch, so it tries more.
    """
    urls = [f"http://e.com/{index}?b&a" for index in range(50_000)]
    interval = sys.getswitchinterval()
    for batch in (lambda: tamis.keys(urls), lambda: tamis.fingerprints(urls, SECRET)):
        seen = []
        for _ in range(50):
            steps = []

            def work():
                steps.append("in")
                batch()
                steps.append("out")

            sys.setswitchinterval(1000)
            thread = threading.Thread(target=work)
            thread.start()
            seen.append(list(steps))
            sys.setswitchinterval(interval)
            thread.join()
            if seen[-1] == ["in"]:
                break
        assert ["in"] in seen, "the interpreter was held all the time"


def check_types():
    """The stubs name what the package has, with the parameters that it takes."""
    stub = ast.parse((HERE / "../python/tamis/__init__.pyi").read_text(encoding="utf-8"))
    functions = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    assert set(functions) | set(classes) == set(tamis.__all__)
    for name, node in functions.items():
        parameters = ", ".join(arg.arg for arg in node.args.args)
        real = getattr(tamis, name).__text_signature__.strip("()").split(", ")
        assert parameters == ", ".join(part.split("=")[0] for part in real), (name, real)
    properties = {node.name for node in classes["Key"].body if isinstance(node, ast.FunctionDef)}
    assert properties == {name for name in dir(tamis.Key) if not name.startswith("_")}


def check_examples():
    failed, tried = doctest.testmod(tamis)
    assert tried > 0 and failed == 0
    failed, tried = doctest.testfile(str(HERE / "../README.md"), module_relative=False)
    assert tried > 0 and failed == 0


count = check_vectors()
check_faults()
check_threads()
check_interpreter_is_free()
check_types()
check_examples()
print(f"python {sys.version.split()[0]}: {count} vectors, examples and types agree")
