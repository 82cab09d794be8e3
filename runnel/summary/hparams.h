#pragma once

// Hyperparameters for TensorBoard's dashboard of them: what an experiment varies, and what each run of it used. Each
// run is a folder with a writer of its own; the configuration stands in the folder above.
//   summary::hparams_config({{"units", summary::Discrete{4, 8}}}, {{"accuracy"}});
//   summary::hparams({{"units", 8}});
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"
#include "runnel/tensor/tensor.h"

namespace runnel::summary {

// A number, a truth or a text.
class HParamValue {
 public:
  enum class Kind : uint8_t { boolean, integer, real, text };
  HParamValue(bool v) : kind_(Kind::boolean), number_(v), integer_(v) {}  // NOLINT: implicit, as all here
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  HParamValue(T v)  // NOLINT
      : kind_(Kind::integer), number_(static_cast<double>(v)), integer_(static_cast<int64_t>(v)) {}
  template <std::floating_point T>
  HParamValue(T v) : kind_(Kind::real), number_(static_cast<double>(v)) {}  // NOLINT
  HParamValue(std::string v) : kind_(Kind::text), text_(std::move(v)) {}    // NOLINT
  HParamValue(const char* v) : HParamValue(std::string(v)) {}               // NOLINT
  Kind kind() const { return kind_; }
  double number() const { return number_; }
  int64_t integer() const { return integer_; }  // of a boolean or an integer, exactly
  const std::string& text() const { return text_; }

 private:
  Kind kind_;
  double number_ = 0;
  int64_t integer_ = 0;
  std::string text_;
};

// What a hyperparameter may be.
struct Discrete {
  Discrete(std::initializer_list<HParamValue> values) : values(values) {}
  explicit Discrete(std::vector<HParamValue> values) : values(std::move(values)) {}
  std::vector<HParamValue> values;
};
struct RealInterval {
  double min_value = 0;
  double max_value = 0;
};
struct IntInterval {
  int64_t min_value = 0;
  int64_t max_value = 0;
};
class HParamDomain {
 public:
  HParamDomain() = default;                                                                    // anything
  HParamDomain(Discrete d) : discrete_(std::move(d.values)), is_interval_(false) {}            // NOLINT: implicit
  HParamDomain(RealInterval i) : low_(i.min_value), high_(i.max_value), is_interval_(true) {}  // NOLINT
  HParamDomain(IntInterval i)                                                                  // NOLINT
      : low_(static_cast<double>(i.min_value)), high_(static_cast<double>(i.max_value)), is_interval_(true) {}
  bool defined() const { return is_interval_.has_value(); }
  bool is_interval() const { return is_interval_.value_or(false); }
  const std::vector<HParamValue>& values() const { return discrete_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  std::vector<HParamValue> discrete_;
  double low_ = 0, high_ = 0;
  std::optional<bool> is_interval_;
};

struct HParam {
  std::string name;
  HParamDomain domain = {};
  std::string display_name = {};
  std::string description = {};
};

struct HParamMetric {
  enum class Dataset : uint8_t { unknown = 0, training = 1, validation = 2 };
  std::string tag;
  std::string group = {};  // the run below the session's, where it is not the session's own
  std::string display_name = {};
  std::string description = {};
  Dataset dataset_type = Dataset::unknown;
};

// Describes an experiment. Times are seconds since 1970; now where they are not given.
RUNNEL_API Tensor hparams_config(const std::vector<HParam>& hparams, const std::vector<HParamMetric>& metrics,
                                 std::optional<double> time_created_secs = {},
                                 SourceSite where = SourceSite::current());

// What this run uses. Runs with one trial_id are shown together; without it, those with the same values.
RUNNEL_API Tensor hparams(const std::map<std::string, HParamValue>& hparams, const std::string& trial_id = "",
                          std::optional<double> start_time_secs = {}, SourceSite where = SourceSite::current());

// How it ended.
enum class HParamsStatus : uint8_t { unknown = 0, success = 1, failure = 2, running = 3 };
RUNNEL_API Tensor hparams_session_end(HParamsStatus status = HParamsStatus::success,
                                      std::optional<double> end_time_secs = {},
                                      SourceSite where = SourceSite::current());

}  // namespace runnel::summary
