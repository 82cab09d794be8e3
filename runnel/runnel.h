#pragma once

// Everything a program needs.
#include "runnel/autodiff/tape.h"
#include "runnel/base/error.h"
#include "runnel/base/parallel.h"
#include "runnel/ops/array.h"
#include "runnel/ops/bitwise.h"
#include "runnel/ops/math.h"
#include "runnel/ops/random.h"
#include "runnel/ops/state.h"
#include "runnel/ops/training.h"
#include "runnel/tensor/tensor.h"
