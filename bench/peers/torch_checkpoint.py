"""torch.save and torch.load on the tensors of the benchmarks of checkpoints, as a state_dict: with load, the tensors of the
program get the values, as a model's load_state_dict does."""
import atexit

import torch

import checkpoint_tensors
import fastest_way

PATH = checkpoint_tensors.prefix("torch")


def make(threads):
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    atexit.register(checkpoint_tensors.remove, PATH)
    return {f"tensor{i}": torch.rand(shape) - 0.5 for i, shape in enumerate(checkpoint_tensors.shapes())}


def save(threads):
    tensors = make(threads)

    def write():
        torch.save(tensors, PATH)
        checkpoint_tensors.sync(PATH)

    yield write, write


def restore(threads):
    tensors = make(threads)
    torch.save(tensors, PATH)

    def read():
        for name, value in torch.load(PATH).items():
            tensors[name].copy_(value)

    def read_in_place_of_the_old():
        tensors.update(torch.load(PATH))

    yield read, read
    yield read_in_place_of_the_old, read_in_place_of_the_old


fastest_way.main({"ckpt_save_1gb": save, "ckpt_restore_1gb": restore})
