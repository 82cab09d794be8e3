#include <cstdio>
#include <exception>

#include "tools/commands.h"

// Exit status: 0 done, 1 the work failed, 2 the command line was wrong.
int main(int argc, char** argv) try {
  CLI::App app{"Runnel, a deep-learning framework: datasets and information from the command line", "runnel"};
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  runnel::tools::add_version(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "runnel: %s (see runnel --help)\n", error.what());
    return 2;
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "runnel: %s\n", error.what());
  return 1;
}
