"""Sweeps over processes of this machine and of a Dask cluster, some of which are killed."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from studies.sweep_functions import GRID, killed, killed_once, slow_square, small, tip

import lissom as ls
from lissom.studies.crews import Processes, crew_of

pytest.importorskip("pyarrow", reason="results are Parquet files")
NUMBERS = {"x": list(range(24))}


def squares(found):
    """Whether a sweep has computed all that NUMBERS asks for."""
    return found.is_complete and not found.failures and found["y"].tolist() == [x * x for x in NUMBERS["x"]]


def test_workers_compute_what_one_process_does(tmp_path):
    """The same bits, failures and remarks, from two processes that begin afresh; the order does not matter."""
    one, two = (ls.sweep(tip, GRID, robot=small(), out=tmp_path / str(n), workers=n, chunk=2) for n in (1, 2))
    np.testing.assert_array_equal(one["tip"], two["tip"])
    assert one.failures == two.failures


def test_all_processes_begin_at_once(monkeypatch):
    """So that they import what they need side by side, each with one thread for linear algebra."""
    monkeypatch.delenv("OMP_NUM_THREADS")
    with crew_of(2, None) as crew:
        assert isinstance(crew, Processes) and len(crew.pool._processes) == 2
        assert [crew.pool.submit(os.getenv, "OMP_NUM_THREADS").result() for _ in range(4)] == ["1"] * 4
    assert "OMP_NUM_THREADS" not in os.environ


def test_workers_that_are_killed(tmp_path, monkeypatch):
    """A worker that ends in the middle of a sample costs nothing but time; a sample that ends whatever computes it is
    found, and none of those beside it has failed."""
    monkeypatch.setenv("LISSOM_TEST_MARKER", str(tmp_path / "marker"))
    found = ls.sweep(killed, {"x": list(range(8))}, out=tmp_path / "out", workers=2, chunk=2)
    assert (tmp_path / "marker").exists()
    assert found.is_complete and found.failures == {3: "the process that computed it ended each time"}


CLIENT = """
import lissom as ls
from studies.sweep_functions import slow_square
if __name__ == "__main__":
    ls.sweep(slow_square, {{"x": list(range(24))}}, out={out!r}, workers=2, chunk=2)
"""


def is_running(process):
    """Whether there is a process of this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition, seconds=30.0):
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_client_that_is_killed_leaves_what_is_finished(tmp_path):
    """Its chunks stay as they are, its workers end with it, and the same sweep computes the rest alone."""
    script, out, seen = tmp_path / "client.py", tmp_path / "out", tmp_path / "processes"
    seen.mkdir()
    script.write_text(CLIENT.format(out=str(out)), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "LISSOM_TEST_PROCESSES": str(seen)}
    client = subprocess.Popen([sys.executable, str(script)], env=environment)
    wait_for(lambda: len(list(out.glob("chunks/*.parquet"))) >= 3)
    workers = [int(file.name) for file in seen.iterdir()]
    assert workers and client.pid not in workers and all(is_running(worker) for worker in workers)
    client.send_signal(signal.SIGKILL)
    client.wait()
    wait_for(lambda: not any(is_running(worker) for worker in workers))
    before = {file: file.stat().st_mtime_ns for file in out.glob("chunks/*.parquet")}
    assert 3 <= len(before) < 12
    assert squares(ls.sweep(slow_square, NUMBERS, out=out, workers=1, chunk=2))
    assert {file: file.stat().st_mtime_ns for file in before} == before


@pytest.mark.filterwarnings("ignore")  # of what Dask itself uses
def test_a_cluster_computes_what_this_machine_does(tmp_path, monkeypatch):
    """Given the address of a scheduler; one of its worker processes is killed, and its chunk is computed again."""
    distributed = pytest.importorskip("distributed", reason="clusters are those of Dask")
    monkeypatch.setenv("LISSOM_TEST_MARKER", str(tmp_path / "marker"))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        assert squares(ls.sweep(killed_once, NUMBERS, out=tmp_path / "squares", cluster=address, chunk=4))
        assert (tmp_path / "marker").exists()
        with distributed.Client(address) as client:
            there = ls.sweep(tip, GRID, robot=small(), out=tmp_path / "there", cluster=client, chunk=2)
            assert client.status == "running"
    here = ls.sweep(tip, GRID, robot=small(), out=tmp_path / "here", workers=1)
    np.testing.assert_array_equal(there["tip"], here["tip"])
    assert there.failures == here.failures


def test_a_cluster_that_is_not_there(monkeypatch, tmp_path):
    """Without Dask the error says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ls.ModelError, match=r"a cluster needs Dask: pip install 'lissom\[cluster\]'"):
        ls.sweep(tip, GRID, robot=small(), out=tmp_path / "out", cluster="tcp://127.0.0.1:1")
