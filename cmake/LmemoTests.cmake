# C++ tests, fuzz targets and benchmarks, all found by name:
#
#   tests/<room>/<name>_test.cpp           cases of that room, in one program <room>_tests
#   tests/<room>/<name>_threads_test.cpp,
#   tests/<room>/two_<name>_test.cpp       threaded cases, in <room>_threaded_tests, so that TSan can pick them
#   tests/<room>/<other>.cpp               helpers of that folder, part of both programs
#   tests/<room>/programs/<name>.cpp       a program that tests start: LMEMO_TEST_PROGRAMS_DIR "/<name>"
#   tests/support/*.cpp                    helpers of all folders, and the doctest main
#   fuzz/<name>_fuzz.cpp                   one libFuzzer program each
#   bench/<name>_bench.cpp                 one program each, with bench/support/*.cpp
#
# ctest sees one entry per file, although a folder compiles into one or two programs.

# Threaded although their names do not say so.
set(LMEMO_THREADED_TESTS)
# `./dev soak` repeats these at ten times the scale (tests/support/test_scale.h).
set(LMEMO_SOAK_TESTS "crash_test|kill_test|_soak_test|_threads_test|two_[a-z_]+_test")

# A folder that is named after no room tests scenarios across rooms and gets them all.
function(lmemo_room_for_tests folder result)
  if(TARGET lmemo_${folder})
    set(${result} lmemo_${folder} PARENT_SCOPE)
  else()
    set(${result} lmemo_cli PARENT_SCOPE)
  endif()
endfunction()

function(lmemo_test_program name folder label)
  add_executable(${name} ${ARGN})
  lmemo_room_for_tests(${folder} room)
  target_link_libraries(${name} PRIVATE lmemo_flags lmemo_test_support ${room})
  target_compile_definitions(${name} PRIVATE
    LMEMO_TEST_PROGRAMS_DIR="${PROJECT_BINARY_DIR}/tests/programs"
    LMEMO_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}/tests")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  add_dependencies(lmemo_all_tests ${name})
  if(label STREQUAL "threaded")
    add_dependencies(lmemo_threaded_tests ${name})
  endif()
  foreach(source IN LISTS ARGN)
    get_filename_component(stem ${source} NAME_WE)
    if(NOT stem MATCHES "_test$")
      continue()
    endif()
    add_test(NAME ${folder}/${stem} COMMAND ${name} "--source-file=*/${folder}/${stem}.cpp")
    set(labels ${label})
    if(stem MATCHES "${LMEMO_SOAK_TESTS}")
      list(APPEND labels soak)
    endif()
    set_tests_properties(${folder}/${stem} PROPERTIES LABELS "${labels}")
  endforeach()
endfunction()

function(lmemo_test_folder folder)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp")
  set(plain)
  set(threaded)
  set(helpers)
  foreach(source IN LISTS sources)
    get_filename_component(file ${source} NAME)
    if(NOT file MATCHES "_test\\.cpp$")
      list(APPEND helpers ${source})
    elseif(file MATCHES "_threads_test\\.cpp$|^two_" OR file IN_LIST LMEMO_THREADED_TESTS)
      list(APPEND threaded ${source})
    else()
      list(APPEND plain ${source})
    endif()
  endforeach()

  set(programs)
  file(GLOB program_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${folder}/programs/*.cpp")
  foreach(source IN LISTS program_sources)
    get_filename_component(program ${source} NAME_WE)
    add_executable(${program} ${source})
    lmemo_room_for_tests(${folder} room)
    target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(${program} PRIVATE lmemo_flags ${room})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/programs")
    add_dependencies(lmemo_all_tests ${program})
    list(APPEND programs ${program})
  endforeach()

  if(plain)
    lmemo_test_program(${folder}_tests ${folder} plain ${plain} ${helpers})
    if(programs)
      add_dependencies(${folder}_tests ${programs})
    endif()
  endif()
  if(threaded)
    lmemo_test_program(${folder}_threaded_tests ${folder} threaded ${threaded} ${helpers})
    if(programs)
      add_dependencies(${folder}_threaded_tests ${programs})
    endif()
  endif()
endfunction()

function(lmemo_add_tests)
  file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cpp")
  add_library(lmemo_test_support STATIC ${support})
  target_include_directories(lmemo_test_support PUBLIC "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(lmemo_test_support PRIVATE lmemo_flags PUBLIC lmemo_base)
  lmemo_use_deps(lmemo_test_support PUBLIC doctest threads)

  add_custom_target(lmemo_all_tests)
  add_custom_target(lmemo_threaded_tests)
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE "${PROJECT_SOURCE_DIR}/tests"
       "${PROJECT_SOURCE_DIR}/tests/*")
  foreach(folder IN LISTS folders)
    if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/tests/${folder}" AND NOT folder STREQUAL "support")
      lmemo_test_folder(${folder})
    endif()
  endforeach()
endfunction()

function(lmemo_add_fuzz_targets)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cpp")
  # What tests and fuzz targets share, without the main function of the tests.
  add_library(lmemo_fuzz_support STATIC "${PROJECT_SOURCE_DIR}/tests/support/forgetful_file_system.cpp")
  target_include_directories(lmemo_fuzz_support PUBLIC "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(lmemo_fuzz_support PRIVATE lmemo_flags PUBLIC lmemo_base)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE lmemo_flags lmemo_fuzz_support lmemo_cli)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  endforeach()
endfunction()

function(lmemo_add_benchmarks)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*_bench.cpp")
  file(GLOB helpers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/support/*.cpp")
  add_library(lmemo_bench_support STATIC ${helpers})
  target_link_libraries(lmemo_bench_support PRIVATE lmemo_flags PUBLIC lmemo_cli)
  lmemo_use_deps(lmemo_bench_support PUBLIC lmdb threads)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE lmemo_flags lmemo_bench_support)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
  endforeach()
endfunction()
