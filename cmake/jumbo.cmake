# Jumbo files: the sources of one folder, up to ten in one compile, which parses their headers once: half of a build's time.
# What a file keeps to itself (static, anonymous namespace) must have a name that is unique in its folder. Off in the preset
# dev, and with -DOCTAVO_JUMBO=OFF: then a change of one file compiles one file.
set(OCTAVO_JUMBO_FILES 10)
# A local name may be that of something in another file, the file that is compiled is not the one that defines the class,
# and g++ 12 takes an empty std::expected that moves for uninitialised when it inlines more.
set(OCTAVO_JUMBO_FLAGS -Wno-shadow
    $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local;-Wno-subobject-linkage;-Wno-maybe-uninitialized>)

# octavo_jumbo(result target folder alone file..): in `result`, what the target compiles in place of the files of src/folder.
# Generated files and those that one of the expressions `alone` matches stay as they are: a file with properties must be there.
function(octavo_jumbo result target folder alone)
  list(JOIN alone "|" alone)
  set(compiled "")
  set(ids "")
  foreach(file IN LISTS ARGN)
    if(NOT OCTAVO_JUMBO OR file MATCHES "^(${alone})$" OR NOT file MATCHES "^[a-z0-9_][a-z0-9_/]+[.]cc$")
      list(APPEND compiled ${file})
      continue()
    endif()
    cmake_path(GET file PARENT_PATH subfolder)
    string(REGEX REPLACE "/|^_+" "_" id "_${subfolder}_")
    list(APPEND ids ${id})
    list(APPEND files_${id} ${file})
  endforeach()
  list(REMOVE_DUPLICATES ids)
  foreach(id IN LISTS ids)
    set(files ${files_${id}})
    list(LENGTH files count)
    math(EXPR batches "(${count} + ${OCTAVO_JUMBO_FILES} - 1) / ${OCTAVO_JUMBO_FILES}")
    foreach(batch RANGE 1 ${batches})
      math(EXPR begin "(${batch} - 1) * ${count} / ${batches}")
      math(EXPR length "${batch} * ${count} / ${batches} - ${begin}")
      list(SUBLIST files ${begin} ${length} included)
      list(TRANSFORM included REPLACE "(.+)" "#include \"${folder}/\\1\"\n")
      list(JOIN included "" text)
      set(jumbo ${CMAKE_CURRENT_BINARY_DIR}/jumbo/${target}${id}${batch}.cc)
      file(CONFIGURE OUTPUT ${jumbo} CONTENT "${text}" @ONLY)
      set_source_files_properties(${jumbo} PROPERTIES COMPILE_OPTIONS "${OCTAVO_JUMBO_FLAGS}")
      list(APPEND compiled ${jumbo})
    endforeach()
  endforeach()
  set(${result} ${compiled} PARENT_SCOPE)
endfunction()
