"""What bench/run compares: for each family, our program, the cases, and each opponent with its goal (ratio)."""

MATMUL = ["matmul_" + c for c in (
    "dense1_fwd", "dense1_dx", "dense1_dw", "dense2_fwd", "dense2_dx", "dense2_dw",
    "m1_784x100", "m1_3136x1024", "1024")]
CONV = [f"conv2d_{shape}_{what}" for shape in ("mnist1", "mnist2", "image1", "image2")
        for what in ("fwd", "bwd_data", "bwd_weights")]
ELEMENTWISE = ["elementwise_add", "elementwise_mul", "elementwise_relu", "exp", "log", "tanh",
               "reduce_sum", "reduce_sum_rows", "reduce_sum_cols", "reduce_max"]

# (our program, opponent's suffix, opponent's program, goal, cases). The suffix "_threads" has no program: it is our own
# with one thread.
FAMILIES = [
    ("eager", "", "torch_eager", 2.8, ["eager_add10"]),
    ("eager", "", "torch_eager", 3.4, ["eager_add10_recording"]),
    ("eager", "", "torch_eager", 3.5, ["eager_chain_backward"]),
    ("nn", "", "torch_nn", 0.95, MATMUL + CONV),
    ("nn", "_vs_limit", "limit_nn", 0.90, MATMUL + CONV),
    ("nn", "_threads", None, 1.7, ["matmul_1024"] + [f"conv2d_{shape}_{what}" for shape in ("image1", "image2")
                                                       for what in ("fwd", "bwd_data", "bwd_weights")]),
    ("elementwise", "", "torch_elementwise", 1.0, ELEMENTWISE),
    ("elementwise", "_vs_limit", "limit_elementwise", 0.90, ELEMENTWISE),
]
