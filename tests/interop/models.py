"""Models that the tests of checkpoints and of weights have in common; C++ makes the same in
tests/support/tensorflow_objects.h."""
import tensorflow as tf

K, L = tf.keras, tf.keras.layers
SIZE = 4


def sequential():
    return K.Sequential([L.Input((4,)), L.Dense(SIZE, activation='relu', name='first'), L.Dense(2, name='second')])


def conv_bn():
    return K.Sequential([L.Input((6, 6, 2)), L.Conv2D(SIZE, 3, padding='same', activation='relu'),
                         L.BatchNormalization(), L.MaxPool2D(), L.Flatten(), L.Dense(3, activation='softmax')])


def embedding():
    return K.Sequential([L.Input((5,), dtype='int32'), L.Embedding(7, SIZE, mask_zero=True), L.GlobalAveragePooling1D(),
                         L.Dense(1)])


def shared_layer(name=None):
    a, b = K.Input((3,), name='left'), K.Input((3,), name='right')
    shared = L.Dense(SIZE, activation='tanh', name='shared')
    x = L.Concatenate(name='join')([shared(a), shared(b)])
    return K.Model([a, b], [L.Dense(2, name='main')(x), L.Dense(1, activation='sigmoid', name='aux')(x)], name=name)


def attention():
    i = K.Input((4, 6))
    x = L.MultiHeadAttention(2, SIZE, name='mha')(i, i)
    return K.Model(i, L.Dense(2)(L.LayerNormalization(name='ln')(L.Add()([i, x]))))


def nested():
    inner = K.Sequential([L.Input((4,)), L.Dense(SIZE), L.Dense(3)], name='inner')
    middle = K.Sequential([inner, L.Dense(2)], name='middle')
    i = K.Input((4,))
    return K.Model(i, L.Dense(1, name='outer_dense')(middle(i)), name='outer')


def recurrent():
    i = K.Input((4, 3))
    x = L.Bidirectional(L.LSTM(SIZE, return_sequences=True))(i)
    x = L.GRU(SIZE, return_sequences=True)(x)
    return K.Model(i, L.RNN(L.StackedRNNCells([L.LSTMCell(2), L.GRUCell(3)]))(x))


class Subclassed(K.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [L.Dense(SIZE, activation='relu'), L.Dense(SIZE)]
        self.heads = {'a': L.Dense(1), 'b': L.Dense(2)}
        self.scale = tf.Variable(1.5, name='scale')

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return tf.concat([self.heads['a'](x), self.heads['b'](x)], -1) * self.scale


def subclassed():
    model = Subclassed()
    model(tf.zeros((1, 4)))
    return model
