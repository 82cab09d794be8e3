"""What bench/run compares: for each family, our program, the cases, and each opponent with its goal (ratio)."""

MATMUL = ["matmul_" + c for c in (
    "dense1_fwd", "dense1_dx", "dense1_dw", "dense2_fwd", "dense2_dx", "dense2_dw",
    "m1_784x100", "m1_3136x1024", "1024")]
CONV = [f"conv2d_{shape}_{what}" for shape in ("mnist1", "mnist2", "image1", "image2")
        for what in ("fwd", "bwd_data", "bwd_weights")]
ELEMENTWISE = ["elementwise_add", "elementwise_mul", "elementwise_relu", "exp", "log", "tanh",
               "reduce_sum", "reduce_sum_rows", "reduce_sum_cols", "reduce_max"]

CHECKPOINT = ["ckpt_save_1gb", "ckpt_restore_1gb"]

# (our program, opponent's suffix, opponent's program, goal, cases). Without a program the opponent is our own: with one
# thread ("_threads"), or running another case.
# What is added to the name of the case for the opponent, where it has several ways.
OPPONENT_CASE = {"_vs_eager": "_eager", "_vs_channels_last": "_channels_last", "_vs_sequential": "_sequential",
                 "_vs_grid": "_grid", "_vs_worst": "_worst", "_vs_2m": "_2m", "_vs_own_float32": "_float32",
                 "_vs_plain": "_plain", "_vs_copy": "_copy", "_vs_1m": "_1m", "_vs_frames": "_frames",
                 "_vs_off": "_off"}

# Cases whose number is one of bytes, the same in every run: printed in megabytes.
BYTES = {"cnn_step_peak_graph", "cnn_step_peak_eager", "ckpt_async_cnn_peak"}

# How often each side runs at least, where that is more than usual.
ROUNDS = {case: 7 for case in CHECKPOINT} | {"autotune_reading": 9}  # two short loops of one thread

FAMILIES = [
    ("eager", "", "torch_eager", 2.8, ["eager_add10"]),
    ("eager", "", "torch_eager", 3.4, ["eager_add10_recording"]),
    ("eager", "", "torch_eager", 3.5, ["eager_chain_backward"]),
    ("eager", "_vs_off", None, 1 / 1.15, ["eager_add10_profiled"]),
    ("nn", "", "torch_nn", 0.95, MATMUL + CONV),
    ("nn", "_vs_limit", "limit_nn", 0.90, MATMUL + CONV),
    ("nn", "_threads", None, 1.7, ["matmul_1024"] + [f"conv2d_{shape}_{what}" for shape in ("image1", "image2")
                                                       for what in ("fwd", "bwd_data", "bwd_weights")]),
    ("elementwise", "", "torch_elementwise", 1.0, ELEMENTWISE),
    ("elementwise", "_vs_limit", "limit_elementwise", 0.90, ELEMENTWISE),
    ("function", "", "torch_function", 15, ["function_chain50"]),
    ("function", "_vs_eager", None, 1.0, ["function_chain50"]),
    ("function", "", "torch_function", 10, ["while_loop_10k"]),
    ("function", "_vs_sequential", None, 1.5, ["two_loops"]),
    ("function", "", "torch_function", 3, ["fused_chain8_1m", "mlp_infer1"]),
    ("function", "", "torch_function", 1.8, ["mlp_step_graph"]),
    ("function", "", "torch_function", 1.4, ["cnn_step_graph"]),
    ("function", "_vs_channels_last", "torch_function", 1.15, ["cnn_step_graph"]),
    ("function", "", "torch_function", 1.0, ["cnn_infer1"]),
    ("function", "", "torch_function", 1 / 0.8, ["cnn_step_peak_graph"]),
    ("function", "", "torch_function", 1.0, ["cnn_step_peak_eager"]),
    ("function", "_vs_limit", "limit_function", 0.85, ["mlp_step_graph"]),
    ("function", "_vs_limit", "limit_function", 0.91, ["cnn_step_graph"]),
    ("function", "_vs_limit", "limit_function", 0.87, ["cnn_infer1"]),
    ("keras", "", "torch_keras", 1.8, ["mlp_fit"]),
    ("keras", "", "torch_keras", 1.4, ["cnn_fit"]),
    ("keras", "", "torch_keras", 1.5, ["mlp_eager"]),
    ("keras", "", "torch_keras", 1.0, ["mlp_predict1"]),
    ("keras", "", "torch_keras", 1.2, ["lstm_step", "mobilenetv2_step"]),
    ("keras", "", "tf_keras.py", 1.5, ["lstm_train_100", "gru_train_200"]),
    # On CPUs that multiply bfloat16 themselves; 1 elsewhere.
    ("keras", "_vs_own_float32", None, 1.5, ["wide_bf16_step", "wide_pure_bf16_step"]),
    ("keras", "_vs_own_float32", None, 1.1, ["cnn_bf16_step", "encoder_bf16_step"]),
    ("optimizer", "", "torch_optimizer", 3, ["adam_fused", "adam_fused_traced"]),
    ("optimizer", "", "torch_optimizer", 10, ["adam_fused_small", "adam_fused_small_traced"]),
    # The CNN's step with an asynchronous save every 100 steps, against one without; the most memory that saves
    # add, against that of the variables that they write.
    ("checkpoint_async", "_vs_plain", None, 1 / 1.035, ["ckpt_async_cnn_step"]),
    ("checkpoint_async", "_vs_copy", None, 1.0, ["ckpt_async_cnn_peak"]),
    ("image", "", "torch_image.py", 2.8, ["jpeg_pipeline"]),
    ("image", "_vs_limit", "limit_image", 0.9, ["jpeg_pipeline", "jpeg_decode", "image_resize"]),
    ("checkpoint", "_vs_limit", "limit_checkpoint", 0.8, CHECKPOINT),
    ("checkpoint", "", "torch_checkpoint.py", 1.0, CHECKPOINT),
    ("checkpoint", "_vs_tensorflow", "tf_checkpoint.py", 1.0, CHECKPOINT),
    ("summary", "", "tensorflow_summary.py", 10, ["summary_scalars"]),
    ("summary", "_vs_1m", None, 1, ["summary_scalars"]),
    ("summary", "_vs_frames", None, 0.5, ["events_read"]),
    ("records", "_vs_limit", "limit_records", 0.8, ["tfrecord_read"]),
    ("records", "", "protobuf_records", 4, ["example_parse"]),
    ("records", "", "protobuf_records", 5.5, ["example_parse_small"]),
    ("data", "", "torch_data.py", 9, ["mnist_pipeline"]),
    ("data", "_vs_limit", "limit_data", 0.6, ["mnist_pipeline"]),
    # An epoch of a map and a consumer that take equally long: 1 / 0.58 and 1 / 0.65.
    ("data", "_vs_sequential", None, 1.725, ["overlap_sleep"]),
    ("data", "_vs_sequential", None, 1.54, ["overlap_compute"]),
    # AUTOTUNE against the best fixed setting of a grid, and that against the worst.
    ("data", "_vs_grid", None, 0.9, ["autotune_interleave"]),
    ("data", "_vs_worst", None, 1.5, ["autotune_interleave_grid"]),
    ("data_jpeg", "_vs_grid", None, 0.9, ["autotune_jpeg"]),
    ("data_jpeg", "_vs_worst", None, 1.5, ["autotune_jpeg_grid"]),
    ("data_records", "_vs_grid", None, 0.9, ["autotune_records"]),
    ("data_records", "_vs_worst", None, 1.5, ["autotune_records_grid"]),
    ("data_records", "_vs_sequential", None, 0.7, ["autotune_reading"]),
    ("data_records", "_vs_2m", None, 1, ["tfrecord_dataset"]),
]
