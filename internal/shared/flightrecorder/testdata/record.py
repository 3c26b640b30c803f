"""Records dumps of PyTorch's Flight Recorder of four ranks on Gloo that hang.

    python record.py CASE FOLDER

CASE is skip, order, shape, dies, data or healthy. Rank 2 does what the others do not.
Each rank that lives writes FOLDER/CASE_rank_N after some seconds. FOLDER is the version
of PyTorch; recorded with TORCH_FR_BUFFER_SIZE=200. With other sizes, Gloo ends the
processes before they write.
"""

import os
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS, ODD = 4, 2


def dump(case, folder, rank):
    time.sleep(20)
    with open(f"{folder}/{case}_rank_{rank}", "wb") as file:
        file.write(torch._C._distributed_c10d._dump_fr_trace())
    time.sleep(20)  # for the others
    os._exit(0)


def load_data():
    time.sleep(60)


def train_step(case, rank, step):
    tensor = torch.ones(16)
    dist.all_reduce(tensor)
    if step < 3 or rank != ODD:
        dist.all_gather([torch.zeros(16) for _ in range(RANKS)], tensor)
        return
    if case == "skip":
        dist.barrier()
    elif case == "order":
        dist.broadcast(tensor, 0)
    elif case == "shape":
        dist.all_gather([torch.zeros(8) for _ in range(RANKS)], torch.ones(8))
    elif case == "dies":
        os._exit(1)
    elif case == "data":
        load_data()
    else:
        dist.all_gather([torch.zeros(16) for _ in range(RANKS)], tensor)


def work(rank, case, folder, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    threading.Thread(target=dump, args=(case, folder, rank), daemon=True).start()
    try:
        for step in range(5):
            train_step(case, rank, step)
    except RuntimeError as error:
        print(case, rank, str(error)[:100], flush=True)
    time.sleep(60)


if __name__ == "__main__":
    case, folder = sys.argv[1:]
    mp.set_start_method("spawn")
    workers = [mp.Process(target=work, args=(rank, case, folder, 29500 + sum(map(ord, case)) % 1000)) for rank in range(RANKS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
