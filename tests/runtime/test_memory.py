import pytest

from fillrank.errors import InputError
from fillrank.runtime import memory
from fillrank.runtime.memory import available_memory, check_memory, format_bytes

MACHINE = "MemTotal:  8000000 kB\nMemFree:  1000 kB\nMemAvailable:  6000000 kB\nCached:  5 kB\n"
NO_LIMIT_V1 = "9223372036854771712\n"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A machine with 6,144,000,000 bytes to be had, and a place for the files of a container."""
    machine = tmp_path / "meminfo"
    machine.write_text(MACHINE)
    monkeypatch.setattr(memory, "_MEMINFO", machine)
    monkeypatch.setattr(memory, "_CGROUP_FOLDER", tmp_path / "control")
    (tmp_path / "control" / "memory").mkdir(parents=True)
    return tmp_path


def contain(system, version, limit, used="1000000000\n", stat=None):
    """Write the files of a container of either version."""
    if version == 2:
        folder, names = system / "control", ("memory.max", "memory.current")
        cache = "inactive_file"
    else:
        folder = system / "control" / "memory"
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        cache = "total_inactive_file"
    for name, content in zip(names, (limit, used), strict=True):
        (folder / name).write_text(content)
    stat = f"anon 5\nactive_file 7\n{cache} 200000000\n" if stat is None else stat
    (folder / "memory.stat").write_text(stat)


EACH_VERSION = pytest.mark.parametrize("version", [1, 2])


def test_a_machine_without_containers(system):
    assert available_memory() == 6_144_000_000


@EACH_VERSION
def test_a_container_has_its_limit_and_files_in_memory_do_not_count(system, version):
    contain(system, version, "3000000000\n")
    assert available_memory() == 3_000_000_000 - 1_000_000_000 + 200_000_000


@EACH_VERSION
def test_a_container_limit_above_the_memory_of_the_machine(system, version):
    contain(system, version, "64000000000\n")
    assert available_memory() == 6_144_000_000


@EACH_VERSION
def test_a_container_without_a_limit(system, version):
    contain(system, version, "max\n" if version == 2 else NO_LIMIT_V1)
    assert available_memory() == 6_144_000_000


@EACH_VERSION
def test_a_container_that_is_full(system, version):
    contain(system, version, "1000000000\n", used="1500000000\n")
    assert available_memory() == 0


@EACH_VERSION
@pytest.mark.parametrize("stat", ["anon 5\n", ""])
def test_a_container_without_cached_files(system, version, stat):
    contain(system, version, "3000000000\n", stat=stat)
    assert available_memory() == 2_000_000_000


@EACH_VERSION
@pytest.mark.parametrize("nonsense", ["", "lots\n"])
def test_invalid_limits_are_ignored(system, version, nonsense):
    contain(system, version, nonsense)
    assert available_memory() == 6_144_000_000


@pytest.mark.parametrize("content", [None, "", "MemTotal: 8 kB\n", "MemAvailable: much\n"])
def test_a_machine_without_meminfo(system, content, monkeypatch):
    (system / "meminfo").unlink()
    if content is not None:
        (system / "meminfo").write_text(content)
    pages = {"SC_AVPHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(memory.os, "sysconf", pages.__getitem__, raising=False)
    assert available_memory() == 4_096_000


def test_unknown_memory_is_no_limit(system, monkeypatch):
    (system / "meminfo").unlink()
    monkeypatch.delattr(memory.os, "sysconf")
    assert available_memory() is None
    check_memory(10**18, "a table", "Give up.")  # nothing is known, so nothing is refused
    contain(system, 2, "3000000000\n")
    assert available_memory() == 2_200_000_000


def test_what_sysconf_does_not_know(system, monkeypatch):
    (system / "meminfo").unlink()

    def refuse(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(memory.os, "sysconf", refuse)
    assert available_memory() is None


def test_this_machine_reports_available_memory():
    assert 2**20 < available_memory() < 2**50


def test_check_memory_rejects_what_does_not_fit(system):
    check_memory(6_144_000_000, "a table", "Ask for less.")
    with pytest.raises(InputError) as info:
        check_memory(6_144_000_001, "a table of 5 cells", "Ask for less.")
    assert str(info.value) == (
        "a table of 5 cells would take about 6.14 GB of memory, and 6.14 GB are available. Ask for less."
    )


@pytest.mark.parametrize(
    ("n_bytes", "written"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (999_999, "1 MB"),
        (3_200_000_000, "3.2 GB"),
        (120e9, "120 GB"),
        (999.9e9, "1 TB"),
        (24e12, "24 TB"),
        (123.4e12, "123 TB"),
        (2.4e18, "2,400,000 TB"),
    ],
)
def test_format_bytes_uses_suitable_units(n_bytes, written):
    assert format_bytes(n_bytes) == written


def test_a_limit_of_the_process_counts(system, monkeypatch):
    monkeypatch.setattr(memory, "_STATM", system / "statm")
    (system / "statm").write_text("1000 1 1 1 0 1 0\n")
    page = memory.resource.getpagesize()
    monkeypatch.setattr(memory.resource, "getrlimit", lambda kind: (3000 * page, 9000 * page))
    assert available_memory() == 2000 * page
    monkeypatch.setattr(memory.resource, "getrlimit", lambda kind: (500 * page, 9000 * page))
    assert available_memory() == 0
    monkeypatch.setattr(memory, "_STATM", system / "nowhere")
    assert available_memory() == 6_144_000_000
