#pragma once

// The course of a training as a picture: what History holds, as SVG.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/keras/logs.h"

namespace runnel::keras::utils {

using MetricsHistory = std::map<std::string, EpochValues>;

struct PlotHistoryOptions {
  std::vector<std::string> metrics = {};  // the ones to draw, with or without "val_"; empty: all
  std::string title = {};
  int width = 640;   // of the picture, in pixels
  int height = 320;  // of each panel
};

// One panel per metric, with the line of the training and, where there is one, of the validation ("val_..."). `epochs`
// are the numbers of the epochs, counted from 0 as History counts them; empty: 0, 1, 2, ... They are shown from 1 on,
// as `fit` prints them.
RUNNEL_API std::string history_svg(const MetricsHistory& history, const std::vector<int64_t>& epochs = {},
                                   const PlotHistoryOptions& options = {}, SourceSite where = SourceSite::current());
RUNNEL_API void plot_history(const MetricsHistory& history, const std::vector<int64_t>& epochs, const std::string& path,
                             const PlotHistoryOptions& options = {}, SourceSite where = SourceSite::current());

// Of what `fit` returns.
template <class History>
  requires requires(const History& h) {
    MetricsHistory(h.history);
    h.epoch;
  }
void plot_history(const History& history, const std::string& path, const PlotHistoryOptions& options = {},
                  SourceSite where = SourceSite::current()) {
  plot_history(history.history, std::vector<int64_t>(history.epoch.begin(), history.epoch.end()), path, options, where);
}

}  // namespace runnel::keras::utils
