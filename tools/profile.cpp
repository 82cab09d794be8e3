// runnel profile: what profiles say.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "runnel/base/format.h"
#include "runnel/io/profile_files.h"
#include "runnel/io/profile_report.h"
#include "tools/commands.h"

namespace runnel::tools {
namespace {

struct ProfileArguments {
  std::string path;
  size_t top = 15;
  bool json = false;
};

void report_profile(const ProfileArguments& a) {
  const std::vector<io::ProfileFile> files = io::find_profiles(a.path);
  const io::ProfileFile& newest = files.back();
  const io::ProfileReport report = io::make_profile_report(io::read_profile_file(newest.path));
  if (a.json) {
    fmt::print("{}\n", io::profile_report_json(report));
    return;
  }
  if (files.size() > 1 || newest.path != a.path) fmt::print("{}\n", newest.path);
  fmt::print("{}", io::profile_report_text(report, a.top));
  if (files.size() == 1) return;
  fmt::print("\nOlder profiles\n");
  for (size_t i = files.size() - 1; i-- > 0;) fmt::print("  {}\n", files[i].path);
}

}  // namespace

void add_profile(CLI::App& app) {
  auto arguments = std::make_shared<ProfileArguments>();
  CLI::App* profile =
      app.add_subcommand("profile", "Tell where the time of a program went: steps, ops, input pipeline, memory");
  profile
      ->add_option(
          "path", arguments->path,
          "A .xplane.pb, .trace.json or .trace.json.gz file of ours or TensorFlow's, or a log folder: its newest")
      ->required()
      ->type_name("FILE|DIR");
  profile->add_flag("--json", arguments->json, "Print one object with everything");
  profile->add_option("--top", arguments->top, "How many ops are shown")->capture_default_str()->type_name("N");
  profile->footer("Example: runnel profile tensorboard");
  profile->callback([arguments] { report_profile(*arguments); });
}

}  // namespace runnel::tools
