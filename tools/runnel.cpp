#include <cstdio>
#include <exception>

#include "runnel/base/version.h"
#include "tools/commands.h"

namespace {

// The deepest command named on the line: the one whose --help is of use.
const CLI::App& parsed_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() != nullptr ? full_name(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

}  // namespace

// Exit status: 0 done, 1 the work failed, 2 the command line was wrong.
int main(int argc, char** argv) try {
  CLI::App app{
      "Runnel, a deep-learning framework: checkpoints, datasets, records, profiles and information from the command "
      "line",
      "runnel"};
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.set_version_flag("--version", std::string("runnel ") + runnel::version());
  runnel::tools::add_board(app);
  runnel::tools::add_ckpt(app);
  runnel::tools::add_data(app);
  runnel::tools::add_events(app);
  runnel::tools::add_keras(app);
  runnel::tools::add_ops(app);
  runnel::tools::add_profile(app);
  runnel::tools::add_records(app);
  runnel::tools::add_version(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    const CLI::App& command = parsed_command(app);
    std::string what = error.what();
    // CLI11 complains of the missing subcommand even when a misspelt one is there.
    if (command.remaining_size() > 0) what = "unknown argument '" + command.remaining().front() + "'";
    std::fprintf(stderr, "runnel: %s (see %s --help)\n", what.c_str(), full_name(command).c_str());
    return 2;
  }
  return 0;
} catch (const runnel::tools::ExitStatus& status) {
  return status.value;
} catch (const std::exception& error) {
  std::fprintf(stderr, "runnel: %s\n", error.what());
  return 1;
}
