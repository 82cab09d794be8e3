"""Runs the judge over files of calls in processes of their own: TensorFlow, too, dies of some calls."""
import ctypes
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal

SECONDS_PER_CALL = 60
MEMORY = 5 << 30  # of addresses; TensorFlow begins with 1.2 GB of them


def read_cases(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return list(zip(lines[::2], lines[1::2]))


M_PERTURB = -6  # of mallopt: with what byte memory is filled
FILLED = (0x41, 0xBE)  # floats near 1, of both signs


def is_same_again(judge, found):
    """Some kernels of TensorFlow leave a part of their result unwritten: then it is what the memory held."""
    libc = ctypes.CDLL(None)
    try:
        for byte in FILLED:
            libc.mallopt(M_PERTURB, byte)
            again = judge()
            if (again["status"], again["reason"], again["detail"]) != (found["status"], found["reason"], found["detail"]):
                return False
    finally:
        libc.mallopt(M_PERTURB, 0)
    return True


def work(pipe):
    import verdict  # TensorFlow starts its threads here

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What ops print and TensorFlow logs is nobody's business here.
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    while True:
        try:
            path, begin = pipe.recv()
        except EOFError:
            return
        for i, (case, answer) in enumerate(read_cases(path)):
            if i < begin:
                continue
            pipe.send(("at", i))
            signal.alarm(SECONDS_PER_CALL)
            try:
                def judge(case=case, answer=answer):
                    return verdict.judge(json.loads(case), json.loads(answer))

                found = judge()
                if found["status"] == "disagree" and not is_same_again(judge, found):
                    found = {"status": "not compared", "reason": "TensorFlow's answer depends on what its memory held",
                             "detail": found["detail"]}
            except Exception as e:  # pylint: disable=broad-except
                found = {"status": "not compared", "reason": "the judge fails",
                         "detail": f"{type(e).__name__}: {e}"[:300]}
            signal.alarm(0)
            pipe.send(("verdict", i, found))
        pipe.send(("done",))


class Worker:
    def __init__(self, start):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = start.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.path = None
        self.at = -1

    def give(self, path, begin):
        self.path, self.at = path, begin - 1
        self.pipe.send((path, begin))


def run(paths, jobs, each):
    """Calls each(path, number, verdict) for every call of the files; a call TensorFlow dies of gets no comparison."""
    import tensorflow_calls  # noqa: F401  once, before the processes are made: they share it

    start = multiprocessing.get_context("fork")
    waiting = [(path, 0) for path in paths]
    workers = []

    def feed(worker):
        if waiting:
            worker.give(*waiting.pop(0))
        else:
            worker.path = None
            worker.pipe.close()
            workers.remove(worker)

    for _ in range(min(jobs, len(paths))):
        workers.append(Worker(start))
        feed(workers[-1])
    while workers:
        for pipe in multiprocessing.connection.wait([w.pipe for w in workers]):
            worker = next(w for w in workers if w.pipe is pipe)
            try:
                message = pipe.recv()
            except (EOFError, ConnectionResetError):
                worker.process.join()
                died = worker.process.exitcode
                each(worker.path, worker.at, {"status": "not compared", "reason": "TensorFlow dies of it",
                                              "detail": f"exit code {died}"})
                waiting.insert(0, (worker.path, worker.at + 1))
                workers.remove(worker)
                workers.append(Worker(start))
                feed(workers[-1])
                continue
            if message[0] == "at":
                worker.at = message[1]
            elif message[0] == "verdict":
                each(worker.path, message[1], message[2])
            else:
                feed(worker)
