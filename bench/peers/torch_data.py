"""PyTorch's DataLoader on the pipeline benchmarks, at its best: the fastest of the usual ways of writing the dataset and of
the numbers of workers. The protocol is that of fastest_way.py; a call is one epoch."""

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import fastest_way

IMAGES, BATCH = 60000, 50


def data():
    pixels = (torch.arange(IMAGES * 784) * 7).to(torch.uint8).reshape(IMAGES, 28, 28)
    return pixels, torch.arange(IMAGES) % 10


class Scaled(Dataset):
    """The map is applied to each element."""

    def __init__(self):
        self.x, self.y = data()

    def __len__(self):
        return IMAGES

    def __getitem__(self, i):
        return self.x[i].float().div_(255), self.y[i]


def mnist_pipeline(threads):
    def same(x):
        return x

    ways = [(Scaled(), same), (TensorDataset(*data()), lambda x: x.float().div_(255))]  # or to each batch
    for dataset, finish in ways:
        for workers in range(0, threads + 1):
            loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=workers,
                                persistent_workers=workers > 0)

            def epoch(loader=loader, finish=finish):
                total = 0.0
                for x, y in loader:
                    total += float(finish(x)[0, 0, 0]) + float(y[0])
                return total

            yield epoch, epoch


torch.set_num_threads(1)  # of each worker
fastest_way.main({"mnist_pipeline": mnist_pipeline})
