#pragma once

// A model as a picture: its layers and how they are connected, as SVG or PNG.
#include <string>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::keras {
class Model;
}

namespace runnel::keras::utils {

struct PlotModelOptions {
  bool show_shapes = false;      // of what goes into a layer and of what comes out
  bool show_dtype = false;       // of its weights
  bool show_layer_names = true;  // otherwise the class of a layer alone
  std::string rankdir = "TB";    // from top to bottom, or "LR": from left to right
  double dpi = 96;               // of PNG: 192 has twice as many pixels in each direction
  bool show_layer_activations = false;
  bool show_trainable = false;
};

// A box for every layer, an arrow for every connection; a layer that is used several times is one box. A model that is
// a class of its own does not know its connections: its layers stand one after the other without arrows. Where shapes
// differ from call to call the picture says "multiple", where they are not known "?".
RUNNEL_API std::string model_svg(const Model& model, const PlotModelOptions& options = {},
                                 SourceSite where = SourceSite::current());
RUNNEL_API std::string model_png(const Model& model, const PlotModelOptions& options = {},
                                 SourceSite where = SourceSite::current());
// Writes a file whose name ends in .png or .svg.
RUNNEL_API void plot_model(const Model& model, const std::string& to_file = "model.png",
                           const PlotModelOptions& options = {}, SourceSite where = SourceSite::current());

}  // namespace runnel::keras::utils
