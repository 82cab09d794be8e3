#The headers that users may include, and all that is installed of them : what is not listed here is internal.A header is
#listed because the documentation names it or because a listed one needs it; \
    the test `layering` checks that the list is
#closed, reaches nothing of a third party, and has nothing of how graphs run.
set(RUNNEL_PUBLIC_HEADERS
#the program's one include
        runnel /
    runnel.h
#errors, files, and what all headers are written in
        runnel /
    base / asked.h runnel / base / env.h runnel / base / error.h runnel / base / export.h runnel / base /
    function_ref.h runnel / base / moved_from.h runnel / base / parallel.h runnel / base / ref.h runnel / base /
    small_vector.h runnel / base / source_site.h runnel / base /
    version.h
#files : records, examples, compression, datasets
        runnel /
    io / checkpoint_names.h runnel / io / checkpoint_reader.h runnel / io / checkpoint_slice.h runnel / io /
    checkpoint_state.h runnel / io / checkpoint_writer.h runnel / io / compression.h runnel / io / csv.h runnel / io /
    datasets.h runnel / io / event.h runnel / io / event_reader.h runnel / io / event_writer.h runnel / io /
    example.h runnel / io / hdf5.h runnel / io / idx.h runnel / io / npz.h runnel / io / record_index.h runnel / io /
    record_reader.h runnel / io /
    record_writer.h
#tensors, shapes, dtypes, structures of them, objects that own variables
        runnel /
    tensor / buffer.h runnel / tensor / bytes.h runnel / tensor / composite.h runnel / tensor / device.h runnel /
    tensor / dtype.h runnel / tensor / half.h runnel / tensor / handle_log.h runnel / tensor / index.h runnel / tensor /
    nest.h runnel / tensor / shape.h runnel / tensor / structure.h runnel / tensor / tensor.h runnel / tensor /
    thread_context.h runnel / tensor /
    trackable.h
#operands and gradients; what an op is, for those who read graphs
        runnel /
    op / attr.h runnel / op / attr_value.h runnel / op / axes.h runnel / op / context.h runnel / op / fields.h runnel /
    op / gradient.h runnel / op / op_def.h runnel / op /
    operand.h
#ops by module
        runnel /
    ops / array.h runnel / ops / audio.h runnel / ops / bitwise.h runnel / ops / composite.h runnel / ops /
    control.h runnel / ops / ctc.h runnel / ops / debugging.h runnel / ops / cumulative.h runnel / ops /
    einsum.h runnel / ops / histogram.h runnel / ops / image.h runnel / ops / io.h runnel / ops / linalg.h runnel /
    ops / lookup.h runnel / ops / math.h runnel / ops / nn.h runnel / ops / norm.h runnel / ops / operators.h runnel /
    ops / parse.h runnel / ops / partition.h runnel / ops / quantization.h runnel / ops / ragged.h runnel / ops /
    random.h runnel / ops / random_state.h runnel / ops / reduce.h runnel / ops / segment.h runnel / ops /
    sets.h runnel / ops / signal.h runnel / ops / sort.h runnel / ops / sparse.h runnel / ops / state.h runnel / ops /
    strings.h runnel / ops / tensor_array.h runnel / ops / tensor_list.h runnel / ops / training.h runnel / ops /
    variable_slot.h
#GradientTape
        runnel /
    autodiff /
    tape.h
#graphs : what can be read and written of them; control flow as templates need it; cancellation
        runnel /
    graph / cancellation.h runnel / graph / control_flow.h runnel / graph / graph.h runnel / graph /
    graph_def.h runnel / graph / name_scope.h runnel / graph /
    plan_options.h
#function, control flow, IF and WHILE
        runnel /
    function / call_key.h runnel / function / concrete_function.h runnel / function / control_flow.h runnel / function /
    function.h runnel / function / function_core.h runnel / function / structure.h runnel / function /
    tensor_spec.h runnel / function / traced_blocks.h runnel / function /
    traced_loop.h
#summaries for TensorBoard
        runnel /
    summary / charts.h runnel / summary / hparams.h runnel / summary / summary.h runnel / summary /
    writer.h
#graphs and sessions of TensorFlow 1
        runnel /
    compat / v1.h runnel / compat /
    v1_train.h
#datasets and their iterators
        runnel /
    data / callables.h runnel / data / csv_sources.h runnel / data / dataset.h runnel / data / file_sources.h runnel /
    data / item.h runnel / data / iterator.h runnel / data / memory_sources.h runnel / data / nested.h runnel / data /
    node_ptr.h runnel / data / nodes.h runnel / data / options.h runnel / data / traced_pass.h runnel / data /
    transformations.h runnel / data /
    typed_dataset.h
#checkpoints
        runnel /
    track / checkpoint.h runnel / track / checkpoint_contents.h runnel / track / checkpoint_manager.h runnel / track /
    checkpoint_options.h runnel / track / foreign_iterator.h runnel / track / restore_status.h runnel / track /
    snapshot.h runnel / track /
    v1_saver.h
#Keras
        runnel /
    keras / activations.h runnel / keras / callbacks.h runnel / keras / config.h runnel / keras / datasets.h runnel /
    keras / functional.h runnel / keras / initializers.h runnel / keras / int_tuple.h runnel / keras / keras.h runnel /
    keras / layer.h runnel / keras / layer_of.h runnel / keras / layer_options.h runnel / keras / logs.h runnel /
    keras / loss_scale_optimizer.h runnel / keras / losses.h runnel / keras / losses_utils.h runnel / keras /
    metrics.h runnel / keras / metrics_base.h runnel / keras / metrics_confusion.h runnel / keras /
    metrics_curve.h runnel / keras / metrics_fbeta.h runnel / keras / metrics_iou.h runnel / keras /
    metrics_mean.h runnel / keras / metrics_mean_tensor.h runnel / keras / model.h runnel / keras /
    model_checkpoint.h runnel / keras / named_callable.h runnel / keras / namespaces.h runnel / keras /
    nest_arg.h runnel / keras / optimizer.h runnel / keras / optimizers.h runnel / keras / optimizers_legacy.h runnel /
    keras / optimizers_recent.h runnel / keras / plot.h runnel / keras / plot_model.h runnel / keras / policy.h runnel /
    keras / positional.h runnel / keras / progbar.h runnel / keras / schedules.h runnel / keras / sequential.h runnel /
    keras / serialization.h runnel / keras / tensorboard.h runnel / keras / training_options.h runnel / keras /
    utils.h
#its layers
        runnel /
    keras / layers / activation_layers.h runnel / keras / layers / attention.h runnel / keras / layers /
    cells.h runnel / keras / layers / conv.h runnel / keras / layers / dense.h runnel / keras / layers /
    dot_attention.h runnel / keras / layers / einsum_dense.h runnel / keras / layers / embedding.h runnel / keras /
    layers / kernel_options.h runnel / keras / layers / lambda.h runnel / keras / layers / merge.h runnel / keras /
    layers / normalization.h runnel / keras / layers / pooling.h runnel / keras / layers / preprocessing.h runnel /
    keras / layers / random_image_layers.h runnel / keras / layers / recurrent.h runnel / keras / layers /
    regularization.h runnel / keras / layers / reshaping.h runnel / keras / layers / resizing_layers.h runnel / keras /
    layers /
    wrappers.h
#its ready - made models
        runnel /
    keras / applications / mobilenet_v2.h runnel / keras / applications / resnet.h)
