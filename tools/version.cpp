#include <cstdio>

#include "runnel/base/version.h"
#include "tools/commands.h"

namespace runnel::tools {

void add_version(CLI::App& app) {
  app.add_subcommand("version", "Print the version")->callback([] { std::printf("runnel %s\n", version()); });
}

}  // namespace runnel::tools
