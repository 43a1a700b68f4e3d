# Every third-party library lmemo can link, behind project-local names: lmemo_dep_zstd, lmemo_dep_crypto, ...
#
#   lmemo_use_deps(lmemo_codec PRIVATE zstd lz4)   # finds what it names, and links it
#   lmemo_check_deps()                             # last line of CMakeLists.txt: stops, naming everything missing
#
# A library is looked up when the first target asks for it, so a build without benchmarks never looks for LMDB.
# Everything comes from the system; nothing is downloaded and nothing is vendored.

# name | Debian package | header | pkg-config module ("-" for header-only use)
set(LMEMO_DEP_TABLE
  "zstd|libzstd-dev|zstd.h|libzstd"
  "lz4|liblz4-dev|lz4.h|liblz4"
  "zlib|zlib1g-dev|zlib.h|zlib"
  # Header only, with XXH_INLINE_ALL defined where it is included: the shared library is built for baseline SSE2 and
  # pays a call per hash, and the per-ISA files need a copy of their own.
  "xxhash|libxxhash-dev|xxhash.h|-"
  "crypto|libssl-dev|openssl/evp.h|libcrypto"
  "sqlite|libsqlite3-dev|sqlite3.h|sqlite3"
  "simdjson|libsimdjson-dev|simdjson.h|simdjson"
  "yaml|libyaml-cpp-dev|yaml-cpp/yaml.h|yaml-cpp"
  "json|nlohmann-json3-dev|nlohmann/json.hpp|-"
  "doctest|doctest-dev|doctest/doctest.h|-"
  "lmdb|liblmdb-dev|lmdb.h|lmdb")

set_property(GLOBAL PROPERTY LMEMO_MISSING_PACKAGES "")
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

function(lmemo_missing package)
  set_property(GLOBAL APPEND PROPERTY LMEMO_MISSING_PACKAGES ${package})
endfunction()

# Makes lmemo_dep_<name>. A library that is not there still gets its target, so that the configuration runs to its
# end and lmemo_check_deps() can name all that is missing at once.
function(lmemo_find_dep name)
  if(TARGET lmemo_dep_${name})
    return()
  endif()
  add_library(lmemo_dep_${name} INTERFACE)
  if(name STREQUAL "threads")
    target_link_libraries(lmemo_dep_threads INTERFACE Threads::Threads)
    return()
  endif()

  foreach(row IN LISTS LMEMO_DEP_TABLE)
    string(REPLACE "|" ";" row "${row}")
    list(GET row 0 row_name)
    if(NOT row_name STREQUAL name)
      continue()
    endif()
    list(GET row 1 package)
    list(GET row 2 header)
    list(GET row 3 module)

    find_path(LMEMO_${name}_INCLUDE ${header})
    mark_as_advanced(LMEMO_${name}_INCLUDE)
    if(NOT LMEMO_${name}_INCLUDE)
      lmemo_missing(${package})
      return()
    endif()
    target_include_directories(lmemo_dep_${name} SYSTEM INTERFACE ${LMEMO_${name}_INCLUDE})

    if(NOT module STREQUAL "-")
      find_package(PkgConfig QUIET)
      if(NOT PkgConfig_FOUND)
        lmemo_missing(pkg-config)
        return()
      endif()
      pkg_check_modules(LMEMO_PC_${name} QUIET IMPORTED_TARGET ${module})
      if(NOT LMEMO_PC_${name}_FOUND)
        lmemo_missing(${package})
        return()
      endif()
      target_link_libraries(lmemo_dep_${name} INTERFACE PkgConfig::LMEMO_PC_${name})
    endif()

    return()
  endforeach()
  message(FATAL_ERROR "cmake/LmemoDeps.cmake has no row for '${name}'")
endfunction()

function(lmemo_use_deps target visibility)
  foreach(name IN LISTS ARGN)
    lmemo_find_dep(${name})
    target_link_libraries(${target} ${visibility} lmemo_dep_${name})
  endforeach()
endfunction()

function(lmemo_check_deps)
  get_property(packages GLOBAL PROPERTY LMEMO_MISSING_PACKAGES)
  if(NOT packages)
    return()
  endif()
  list(REMOVE_DUPLICATES packages)
  list(SORT packages)
  string(REPLACE ";" " " packages "${packages}")
  message(FATAL_ERROR "Libraries that lmemo builds on are missing. Install them and build again:\n"
                      "    apt-get install -y ${packages}\n"
                      "(`./dev build` does this by itself.)")
endfunction()
