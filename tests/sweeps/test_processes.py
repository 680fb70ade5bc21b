"""Sweeps over processes of this machine and of a Dask cluster, some of which are killed."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from threading import Thread

import numpy as np
import pytest
from sweeps.sweep_functions import GRID, begin_lightly, force, killed, killed_once, slow_square, small, tip

import lissom as ls
from lissom.sweeps import sweep as sweep_module
from lissom.sweeps import workers
from lissom.sweeps.workers import Cluster, Processes, pool_of

pytest.importorskip("pyarrow", reason="results are Parquet files")
NUMBERS = {"x": list(range(24))}


def squares(found):
    """Whether a sweep has computed all that NUMBERS asks for."""
    return found.is_complete and not found.failures and found["y"].tolist() == [x * x for x in NUMBERS["x"]]


def test_workers_compute_what_one_process_does(tmp_path):
    """The same bits, failures and remarks, from two processes that begin afresh; the order does not matter."""
    one, two = (ls.sweep(force, GRID, robot=small(), out=tmp_path / str(n), workers=n, chunk=2) for n in (1, 2))
    np.testing.assert_array_equal(one["force"], two["force"])
    assert one.failures == two.failures


def test_all_processes_begin_at_once(monkeypatch):
    """So that they import their modules side by side, each with one thread for linear algebra."""
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(workers, "begin_worker", begin_lightly)
    with pool_of(2, None) as pool:
        assert isinstance(pool, Processes) and len(pool.pool._processes) == 2
        assert [pool.pool.submit(os.getenv, "OMP_NUM_THREADS").result() for _ in range(4)] == ["1"] * 4
    assert "OMP_NUM_THREADS" not in os.environ


def test_workers_that_are_killed(tmp_path, monkeypatch):
    """A worker that ends in the middle of a sample costs nothing but time; a sample that ends whatever computes it is
    found, and none of those beside it has failed."""
    monkeypatch.setenv("LISSOM_TEST_MARKER", str(tmp_path / "marker"))
    monkeypatch.setattr(workers, "begin_worker", begin_lightly)  # a dozen processes begin here
    found = ls.sweep(killed, {"x": list(range(8))}, out=tmp_path / "out", workers=2, chunk=2)
    assert (tmp_path / "marker").exists()
    assert found.is_complete and found.failures == {3: "the process that computed it ended each time"}


CLIENT = """
import lissom as ls
from sweeps.sweep_functions import slow_square
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


def wait_for(condition, seconds=120.0):
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
            there = ls.sweep(force, GRID, robot=small(), out=tmp_path / "there", cluster=client, chunk=2)
            assert client.status == "running"
    here = ls.sweep(force, GRID, robot=small(), out=tmp_path / "here", workers=1)
    np.testing.assert_array_equal(there["force"], here["force"])
    assert there.failures == here.failures


def test_a_cluster_that_is_not_there(monkeypatch, tmp_path):
    """Without Dask the error says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ls.ModelError, match=r"a cluster needs Dask: pip install 'lissom\[cluster\]'"):
        ls.sweep(tip, GRID, robot=small(), out=tmp_path / "out", cluster="tcp://127.0.0.1:1")


UNGUARDED = """
import lissom as ls
def f(trial):
    return {{"y": trial["x"]}}
ls.sweep(f, {{"x": [1.0, 2.0]}}, out={out!r}, workers=2)
"""


def test_a_script_without_a_guard_ends_with_one_sentence(tmp_path):
    """Each process would run the script and sweep again; the first that ends so ends the sweep."""
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format(out=str(tmp_path / "out")), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1
    assert 'call sweep under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


class Client:
    """A client of a cluster, as far as a sweep that waits asks it."""

    def __init__(self, *counts):
        self.counts = list(counts)

    def nthreads(self):
        count = self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]
        if count is None:
            raise OSError("the scheduler is gone")
        return {"a": count} if count else {}


@pytest.mark.parametrize("gone", [0, None])
def test_a_cluster_without_workers_is_not_waited_for_in_silence(monkeypatch, gone):
    """A warning says so soon; where there were workers the sweep ends after a while, where none came it waits."""
    now = [0.0]
    monkeypatch.setattr("lissom.sweeps.workers.time.monotonic", lambda: now[0])

    def waiting(*counts):
        pool = object.__new__(Cluster)
        pool.client, pool.seen, pool.is_told, pool.had_workers = Client(*counts), now[0], False, False
        return pool

    lost = waiting(1, gone)
    lost.check()
    now[0] += 11.0
    with pytest.warns(ls.PlausibilityWarning, match="the cluster has no worker; the sweep ends in 600 s"):
        lost.check()
    now[0] += 500.0
    lost.check()
    now[0] += 100.0
    with pytest.raises(OSError, match="the last worker of the cluster is gone; finished samples are kept"):
        lost.check()
    queued = waiting(gone, gone, 1)
    now[0] += 11.0
    with pytest.warns(ls.PlausibilityWarning, match="the cluster has no worker$"):
        queued.check()
    now[0] += 10_000.0
    queued.check()
    queued.check()
    assert queued.had_workers


class Instant:
    """An executor that has computed each chunk when it is submitted."""

    def submit(self, *arguments):
        future = Future()
        future.set_result(arguments)
        return future


def test_a_worker_that_is_gone_before_the_first_look_was_there(monkeypatch):
    """It has computed a chunk, and so the sweep ends some time after it is gone."""
    now = [0.0]
    monkeypatch.setattr("lissom.sweeps.workers.time.monotonic", lambda: now[0])
    pool = object.__new__(Cluster)
    pool.client, pool.executor, pool.seen, pool.is_told, pool.had_workers = Client(0), Instant(), 0.0, False, False
    pool.submit(b"", [0], np.zeros((1, 1)))
    now[0] += 601.0
    with (
        pytest.warns(ls.PlausibilityWarning, match="the sweep ends in 600 s"),
        pytest.raises(OSError, match="the last worker of the cluster is gone"),
    ):
        pool.check()


@pytest.mark.filterwarnings("ignore")  # of what Dask itself uses
def test_a_sweep_ends_when_its_last_worker_is_gone(tmp_path, monkeypatch):
    """As it happens: the only worker of a cluster stops in the middle, and nobody replaces it."""
    distributed = pytest.importorskip("distributed", reason="clusters are those of Dask")
    monkeypatch.setattr(workers, "_GONE", 1.0)
    monkeypatch.setattr(sweep_module, "_LOOK", 0.2)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        out = tmp_path / "out"
        told = []

        def scale():
            wait_for(lambda: list(out.glob("chunks/*.parquet")))
            cluster.scale(0)
            told.append("gone")

        thread = Thread(target=scale)
        thread.start()
        with pytest.raises(OSError, match="the last worker of the cluster is gone"):
            ls.sweep(slow_square, {"x": list(range(400))}, out=out, cluster=cluster.scheduler_address, chunk=2)
        thread.join()
        assert told == ["gone"]
