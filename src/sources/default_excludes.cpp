// The list of what is left out unless asked for. It is data: add a line, and it is in the help of no command, so name it
// in docs/sections.md as well.
#include "sources/glob.h"

namespace lmemo {

const std::vector<std::string>& default_excludes() {
  // clang-format off: a line for what belongs together, not for every pattern.
  static const std::vector<std::string> patterns = {
      // Version control.
      "**/.git", "**/.hg", "**/.svn", "**/.bzr", "**/CVS", "**/_darcs", "**/.jj", "**/.fossil",
      // Virtual environments and caches of tools.
      "**/.venv", "**/venv", "**/.virtualenv", "**/virtualenv", "**/__pycache__", "**/.tox", "**/.nox", "**/.mypy_cache",
      "**/.pytest_cache", "**/.ruff_cache", "**/.hypothesis", "**/.ipynb_checkpoints", "**/.cache", "**/.ccache",
      "**/.idea", "**/.vscode", "**/.DS_Store",
      // Dependencies.
      "**/node_modules", "**/bower_components", "**/jspm_packages", "**/site-packages",
      // Build output.
      "**/build", "**/dist", "**/target", "**/_build", "**/.eggs", "**/*.egg-info", "**/cmake-build-*", "**/.next",
      "**/.nuxt", "**/.gradle", "**/.terraform", "**/.bazel", "**/__generated__", "**/generated", "**/*.rlib", "**/*.wasm", "**/*.pyc", "**/*.pyo", "**/*.o", "**/*.obj", "**/*.a",
      "**/*.so", "**/*.dylib", "**/*.dll", "**/*.exe", "**/*.class", "**/*.min.js", "**/*.min.css", "**/*.map",
      // Lock files.
      "**/*.lock", "**/package-lock.json", "**/npm-shrinkwrap.json", "**/pnpm-lock.yaml", "**/bun.lockb", "**/go.sum",
      "**/packages.lock.json", "**/gradle.lockfile",
      // Archives.
      "**/*.zip", "**/*.tar", "**/*.gz", "**/*.tgz", "**/*.bz2", "**/*.xz", "**/*.zst", "**/*.lz4", "**/*.7z", "**/*.rar",
      "**/*.jar", "**/*.war", "**/*.whl", "**/*.deb", "**/*.rpm", "**/*.iso",
      // Pictures and prints, which are no text and need not be read to know it.
      "**/*.png", "**/*.jpg", "**/*.jpeg", "**/*.gif", "**/*.ico", "**/*.webp", "**/*.pdf",
      // What says how to train.
      "**/.dlm",
      // Keys and secrets.
      "**/secrets.*", "**/.env*", "**/*.pem", "**/*.key", "**/*.p12", "**/*.pfx", "**/*.jks", "**/*.keystore", "**/*.kdbx", "**/*.gpg",
      "**/id_rsa*", "**/id_dsa*", "**/id_ecdsa*", "**/id_ed25519*", "**/.netrc", "**/.pypirc", "**/.npmrc", "**/.htpasswd",
      "**/.ssh", "**/.gnupg", "**/.aws",
  };
  // clang-format on
  return patterns;
}

}  // namespace lmemo
