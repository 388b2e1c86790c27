// tt attach --check: programs that cannot be traced, and why.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <format>
#include <fstream>
#include <string>

#include "tests/cli/tt_program.h"

namespace tt {
namespace {

namespace fs = std::filesystem;

struct CheckCase {
  const char* name;
  std::string program;  // as the shell takes it
  int code;
  std::string words;  // in the answer
};

TEST(AttachCheck, SaysWhetherAProgramCanBeTraced) {
  const test::TempFolder folder;
  std::ofstream(folder / "text.txt") << "no program\n";
  std::ofstream(folder / "script") << "#!/usr/bin/env llama-completion\n";
  std::ofstream(folder / "static_script") << "#!" << built_program("static_program") << "\n";
  for (const char* name : {"text.txt", "script", "static_script"})
    fs::permissions(folder / name, fs::perms::owner_all);
  const CheckCase cases[] = {{"completion", "llama-completion", 0, "can be traced. It uses /"},
                             {"library", "llama-completion", 0, "libggml-base"},
                             {"loads it later", "/bin/ls", 0,
                              "/bin/ls does not name a ggml library; it is traced if it loads one"},
                             {"script", "./script", 0, "can be traced"},
                             {"static", built_program("static_program"), 1,
                              "LD_PRELOAD has no effect on " + built_program("static_program") +
                                  " (statically linked). Use a build with BUILD_SHARED_LIBS=ON."},
                             {"interpreter", "./static_script", 1, "statically linked"},
                             {"musl", built_program("musl_program"), 1, "uses musl (Alpine)"},
                             {"old glibc", built_program("old_program"), 1,
                              "runs with a glibc that is too old: the agent needs glibc 2.34."},
                             {"missing", "no-such-program", 1, "was not found in PATH"},
                             {"missing path", "./no-such-program", 1, "does not exist"},
                             {"text", "./text.txt", 1, "neither a program nor a script"},
                             {"folder", "/", 1, "is a folder"}};
  for (const CheckCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Result result = run_tt(folder, "attach --check -- " + c.program + " -m x.gguf");
    EXPECT_EQ(result.code, c.code) << result.out << result.err;
    EXPECT_NE(result.out.find(c.words), std::string::npos) << result.out << result.err;
  }
  // Without --check, it does not start.
  const Result refused = run_tt(folder, "attach -- " + built_program("static_program"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("statically linked"), std::string::npos) << refused.err;
}

TEST(AttachCheck, SetUserIdProgramIsRefused) {
  const test::TempFolder folder;
  std::string program = "su";  // belongs to root
  if (::geteuid() == 0) {
    fs::copy_file("/bin/true", folder / "other");
    ASSERT_EQ(::chown((folder / "other").c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chmod((folder / "other").c_str(), 04755), 0);
    program = "./other";
  }
  const Result result = run_tt(folder, "attach --check -- " + program);
  EXPECT_EQ(result.code, 1) << result.out;
  EXPECT_NE(result.out.find("LD_PRELOAD has no effect on"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("set-user-id"), std::string::npos) << result.out;
}

TEST(AttachCheck, TracedProgramIsNotTracedAgain) {
  const test::TempFolder folder;
  const Result inner =
      run_tt(folder, std::format("attach -- {} attach --check -- llama-completion", kTestPaths.tt));
  EXPECT_EQ(inner.code, 1);
  EXPECT_NE(inner.out.find("its programs are traced already"), std::string::npos) << inner.out;
}

TEST(AttachCheck, PrintsTheLinesForOllama) {
  const test::TempFolder folder;
  const Result result = run_tt(folder, "attach --ollama -o traces");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find(std::format("\n[Service]\nExecStart=\nExecStart={} attach -o {} -- "
                                        "/usr/local/bin/ollama serve\n",
                                        kTestPaths.tt, (folder / "traces").string())),
            std::string::npos)
      << result.out;
}

TEST(AttachCheck, ProgramWithoutGraphsIsNamed) {
  const test::TempFolder folder;
  const Result failed = run_tt(folder, "attach -- sh -c 'exit 7'");
  EXPECT_EQ(failed.code, 7) << "the program's own";
  EXPECT_EQ(failed.err, "") << "it may have failed before it could evaluate a graph";
  const Result result = run_tt(folder, "attach -- sh -c 'exit 0'");
  EXPECT_NE(result.err.find("sh never called ggml through a shared library. It may link llama.cpp "
                            "statically"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(run_tt(folder, "attach").code, 2);
}

}  // namespace
}  // namespace tt
