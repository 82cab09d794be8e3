"""PyTorch's DataLoader on photographs, at its best: the fastest of the usual ways to decode and resize and of the numbers of
workers. The protocol is that of fastest_way.py."""
import glob
import os

import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import fastest_way

SIDE, BATCH, PHOTOGRAPHS, PASSES = 256, 32, 600, 2  # as in bench/photographs.h


def photographs():
    at = os.path.dirname(os.path.abspath(__file__))
    root = os.environ.get("RUNNEL_FIXTURES", "")
    while not root and at != "/":
        at = os.path.dirname(at)
        if os.path.isdir(os.path.join(at, "shared", "fixtures")):
            root = os.path.join(at, "shared", "fixtures")
    files = sorted(glob.glob(os.path.join(root, "cats_vs_dogs", "*", "*", "*.jpg")))[:PHOTOGRAPHS]
    if len(files) < PHOTOGRAPHS:
        raise SystemExit("the photographs of cats_vs_dogs are missing: set RUNNEL_FIXTURES to the folder above it")
    return files


class Photographs(Dataset):
    def __init__(self, load, count):
        self.files, self.load, self.count = photographs(), load, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.load(self.files[i % PHOTOGRAPHS])


def by_pil(path):
    small = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.BILINEAR)
    return torch.from_numpy(numpy.array(small)).float().div_(255)


def by_torchvision(path):
    import torchvision.transforms.functional as F
    return F.to_tensor(F.resize(Image.open(path).convert("RGB"), (SIDE, SIDE)))


def by_torchvision_io(path):
    import torchvision.io
    x = torchvision.io.decode_jpeg(torchvision.io.read_file(path), torchvision.io.ImageReadMode.RGB)
    x = torch.nn.functional.interpolate(x[None].float(), (SIDE, SIDE), mode="bilinear", align_corners=False)
    return x[0].div_(255)


def works(load):
    try:
        load(photographs()[0])
        return True
    except Exception:  # pylint: disable=broad-except  # a package without JPEG support
        return False


def jpeg_pipeline(threads):
    for load in filter(works, (by_pil, by_torchvision, by_torchvision_io)):
        for workers in range(0, threads + 1):
            def over(count, load=load, workers=workers):
                loader = DataLoader(Photographs(load, count), batch_size=BATCH, num_workers=workers,
                                    persistent_workers=workers > 0)
                return lambda: [x.shape for x in loader]

            yield over(3 * BATCH), over(PASSES * PHOTOGRAPHS)


torch.set_num_threads(1)  # of each worker
fastest_way.main({"jpeg_pipeline": jpeg_pipeline})
