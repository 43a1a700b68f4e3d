# The extension lmemo._core from python/src/*.cpp, and its type stubs.

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(nanobind 3.1 CONFIG REQUIRED)

file(GLOB python_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.cpp")
# FREE_THREADED: needs no GIL where Python has none; what the GIL guards elsewhere has locks then (python_mutex.h).
nanobind_add_module(_core FREE_THREADED NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS ${python_sources})
target_link_libraries(_core PRIVATE lmemo_flags lmemo_cli)
set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/python")
install(TARGETS _core LIBRARY DESTINATION lmemo COMPONENT python)
if(DEFINED SKBUILD_DATA_DIR)
  # What `lmemo demo` works on, found from the package upwards.
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/corpus" "${PROJECT_SOURCE_DIR}/examples/tokenizer"
    DESTINATION "${SKBUILD_DATA_DIR}/share/lmemo" COMPONENT share)
endif()

# python/lmemo/_core.pyi is kept in the repository, so that editors and mypy work in a fresh clone and a change of the
# interface shows in review. `./dev build` renews it from this one; tests/house/stubs_test.py compares the two.
nanobind_add_stub(_core_stub
  MODULE _core
  OUTPUT "${PROJECT_BINARY_DIR}/python/_core.pyi"
  PYTHON_PATH "$<TARGET_FILE_DIR:_core>"
  PATTERN_FILE "${PROJECT_SOURCE_DIR}/python/src/stub_patterns.txt"
  DEPENDS _core)
