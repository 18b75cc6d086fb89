"""What the server of `forked` imports beside heedful: what training and auditing load late."""

import torch

import heedful.jobs
import heedful.report.page  # noqa: F401

torch.set_num_threads(1)
torch.optim.AdamW([torch.zeros(1, requires_grad=True)])  # imports much the first time
