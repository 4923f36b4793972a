# How the project's targets are built: one static library a folder, warnings on, sanitizers by option, no machine flags anywhere.

# weft_configure(TARGET): the flags that every target of the project shares.
function(weft_configure target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-sign-compare -ffp-contract=off
                         $<$<BOOL:${WEFT_WERROR}>:-Werror>)
  if(WEFT_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${WEFT_SANITIZE})
    if(NOT WEFT_SANITIZE STREQUAL "thread")
      target_compile_options(${target} PUBLIC -fno-sanitize-recover=all)
    endif()
  endif()
endfunction()

# weft_precompiled: owns the headers that most sources of the libraries include, so that they are read once. It has no definitions of its own:
# GCC would not take the headers where one is missing.
function(weft_precompiled)
  add_library(weft_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cc)
  weft_configure(weft_precompiled)
  target_link_libraries(weft_precompiled PRIVATE absl::status absl::statusor absl::strings absl::str_format absl::span absl::function_ref)
  target_precompile_headers(weft_precompiled PRIVATE <algorithm> <cmath> <cstdint> <map> <memory> <optional> <string> <utility> <vector>
                            <absl/functional/function_ref.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h>
                            <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/types/span.h>)
endfunction()

# weft_library(NAME SOURCES... ): the static library weft_NAME, exported as Weft::NAME. The kernels, with flags of their own, read their headers
# themselves.
function(weft_library name)
  add_library(weft_${name} STATIC ${ARGN})
  add_library(Weft::${name} ALIAS weft_${name})
  set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name})
  weft_configure(weft_${name})
  target_include_directories(weft_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft>)
  if(NOT name STREQUAL "kernels")
    target_precompile_headers(weft_${name} REUSE_FROM weft_precompiled)
  endif()
  install(TARGETS weft_${name} EXPORT WeftTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
