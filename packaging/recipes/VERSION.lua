-- Lmod: modulefiles/powersweep/@VERSION@.lua. The archive is unpacked in `root`.
local root = "/opt/powersweep/@VERSION@"

help([[powersweep: parameter sweeps of power-aware cluster scheduling. First steps: powersweep --help, man powersweep.]])
whatis("Name: powersweep")
whatis("Version: @VERSION@")
whatis("Description: parameter sweeps of power-aware cluster scheduling")
conflict("powersweep")

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("FPATH", pathJoin(root, "share/zsh/site-functions"))
