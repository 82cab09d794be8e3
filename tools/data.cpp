#include <cstdio>
#include <memory>

#include "runnel/io/datasets.h"
#include "tools/commands.h"
#include "tools/progress.h"

namespace runnel::tools {
namespace {

struct DataArguments {
  std::string name;
  io::DatasetOptions options;
};

void add_name_and_dir(CLI::App& command, DataArguments& arguments) {
  command.add_option("dataset", arguments.name, "Its name: " + CLI::detail::join(io::dataset_names(), ", "))
      ->required();
  command.add_option("--dir", arguments.options.dir, "The folder of the files (default: in the cache folder)")
      ->type_name("DIR");
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Fetch datasets and tell where they are");
  data->require_subcommand(1);
  data->footer(
      "The cache folder is $RUNNEL_HOME, else $XDG_CACHE_HOME/runnel, else ~/.cache/runnel.\n"
      "Example: runnel data get mnist");
  auto arguments = std::make_shared<DataArguments>();

  CLI::App* get = data->add_subcommand("get", "Fetch a dataset unless it is there, check it, print its folder");
  add_name_and_dir(*get, *arguments);
  get->callback([arguments] {
    std::string dir;
    {
      ProgressLine line;
      arguments->options.progress = [&](const std::string& what, uint64_t done, uint64_t total) {
        line.update(what, done, total);
      };
      dir = io::get_dataset(arguments->name, arguments->options);
    }
    std::printf("%s\n", dir.c_str());
  });

  CLI::App* path = data->add_subcommand("path", "Print the folder where a dataset is or would be");
  add_name_and_dir(*path, *arguments);
  path->callback([arguments] {
    const io::DatasetSpec& spec = io::dataset_spec(arguments->name);
    std::printf("%s\n", io::dataset_dir(spec.name, arguments->options).c_str());
  });
}

}  // namespace runnel::tools
