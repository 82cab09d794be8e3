"""TensorFlow at what bench/ours/keras.cpp does: steps of recurrent layers in a tf.function. The protocol is that of
fastest_way.py."""
import os

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")

import tensorflow as tf  # noqa: E402

import fastest_way  # noqa: E402

CALLS = 10  # of a measurement


def recurrent_train(layer, steps):
    """A layer of 128 units over [32, steps, 64]: the mean of squares of the last output's distance from a target."""
    def case(threads):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        model = layer(128)
        x, target = tf.random.normal([32, steps, 64]), tf.random.normal([32, 128])
        model(x)
        adam = tf.keras.optimizers.Adam()
        adam.build(model.trainable_variables)

        @tf.function  # with XLA it takes many times as long
        def step(x, target):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.math.squared_difference(model(x), target))
            adam.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            return loss

        yield lambda: step(x, target), lambda: [step(x, target) for _ in range(CALLS)], CALLS

    return case


fastest_way.main({
    "lstm_train_100": recurrent_train(tf.keras.layers.LSTM, 100),
    "gru_train_200": recurrent_train(tf.keras.layers.GRU, 200),
})
