import pytest

from fillrank.paper.study import Experiment, Result, Task, advance, results_of, seconds_left


class Memory:
    """Results in a list."""

    def __init__(self, *results):
        self.results = list(results)

    def find(self, key):
        return next((result for result in self.results if result.key == key), None)

    def add(self, result):
        self.results.append(result)


def experiment_of(run, n_tasks=3):
    tasks = [Task({"n": n}, 1.0 + n) for n in range(n_tasks)]
    return Experiment("counting", {}, tasks, run, lambda results, folder: [], ())


def test_every_task_runs_once_and_in_order():
    seen = []
    experiment = experiment_of(lambda key: seen.append(key["n"]) or {"square": key["n"] ** 2})
    record = Memory(Result({"n": 1}, {"square": 1}, 2.0))
    steps = list(advance(experiment, record))
    assert seen == [0, 2]
    assert [(step.done, step.task and step.task.key["n"]) for step in steps] == [
        (1, 0),
        (2, 2),
        (3, None),
    ]
    assert {step.total for step in steps} == {3}
    assert [result.numbers["square"] for result in results_of(experiment, record)] == [0, 1, 4]


def test_an_interrupted_task_leaves_no_result():
    def run(key):
        if key["n"] == 1:
            raise KeyboardInterrupt
        return {}

    record, experiment = Memory(), experiment_of(run)
    with pytest.raises(KeyboardInterrupt):
        list(advance(experiment, record))
    assert [result.key for result in record.results] == [{"n": 0}]


def test_time_left_follows_the_measured_pace_and_the_weights():
    light, heavy = Task({"n": 0}, 1.0), Task({"n": 1}, 10.0)
    assert seconds_left([], [light, heavy]) == 11.0
    assert seconds_left([(light, Result({"n": 0}, {}, 0.5))], [heavy]) == 5.0
    assert seconds_left([(heavy, Result({"n": 1}, {}, 40.0))], [light]) == 4.0
    assert seconds_left([(heavy, Result({"n": 1}, {}, 40.0))], []) == 0.0
