package artifact

import (
	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// wide lists the packages that hold shells, loaders, writers and evaluators
// under plain names, or functions that call what a configuration names. An
// entry of allowed_modules for such a package permits nothing; "pkg.mod:name"
// permits one callable.
var wide = func() map[string]bool {
	names := content.Words(`
		_codecs _ctypes _dbm _frozen_importlib _frozen_importlib_external _functools _gdbm _imp
		_interpreters _io _multiprocessing _operator _pickle _posixshmem _posixsubprocess _pyio _pyrepl
		_sitebuiltins _socket _sqlite3 _testcapi _testinternalcapi _thread _winapi _xxsubinterpreters
		accelerate aiohttp airflow allennlp ansible antigravity apache_beam apex argparse ast asyncio
		atexit autogen autogen_agentchat autogen_core bdb bentoml boto3 botocore bz2 catalogue
		catalyst celery cffi cgi cgitb click cloudpickle cmd code codecs codeop collections colossalai
		compileall composer concurrent confection configparser contextlib copy copyreg cProfile crewai
		ctypes cudf cupy curses cython dagster dask dataclasses datasets dbm deepspeed dependency_injector
		detectron2 dgl diffusers dill dis distutils django doctest dspy duckdb dvc dynaconf email
		encodings ensurepip enum fabric fairseq fairseq2 fastai faulthandler fiddle fileinput fire flair
		flask flax flytekit fsspec ftplib functools fvcore gc genericpath gensim getpass gin glob google
		gradio grp grpc guidance gzip h5py http httpx huggingface_hub hydra hydra_zen hyperopt
		hypothesis idlelib ignite imaplib imp importlib injector inspect invoke io iopath ipykernel
		ipython IPython jax jaxlib jinja2 joblib jsonargparse jsonpickle jupyter jupyter_client kedro
		keras kfp kubernetes langchain langchain_community langchain_core langchain_experimental langgraph
		lib2to3 lightning lightning_fabric lightning_utilities linecache llama_index
		llamafactory llmcompressor lmdeploy logging loky luigi lxml lzma mailbox mako marshal matplotlib
		metaflow mindspore ml_collections mmaction mmap mmcls mmcv mmdeploy mmdet mmengine
		mmocr mmpose mmpretrain mmrazor mmrotate mmseg modulefinder msvcrt multiprocess multiprocessing
		nbclient nbconvert nemo netrc networkx nltk nntplib nox nt ntpath numba numexpr numpy omegaconf
		onnx onnxruntime openai operator optparse optuna orbax os outlines paddle paddlenlp pandas
		papermill paramiko parsl pathlib pathos pdb peft pexpect pickle pickletools pip pipes
		pkg_resources pkgutil platform plistlib pluggy polars poplib posix posixpath prefect profile
		pstats psutil psycopg psycopg2 pty pwd py_compile pyarrow pydantic pydantic_settings pydoc pytest
		pytorch_lightning ray readline reprlib requests resource rlcompleter rq ruamel runpy sacred
		safetensors sched scipy scrapy setuptools sh shelve shlex shutil
		signal site sitecustomize skimage sklearn smolagents smtpd smtplib snakemake socket
		socketserver spacy spwd sqlalchemy sqlite3 srsly ssl stevedore streamlit string submitit
		subprocess sympy symtable sys sysconfig tarfile telnetlib tempfile tensorboard tensorflow
		tensorflow_datasets tensorflow_hub tensorrt test thinc threading timeit timm tkinter
		tokenizers torch torch_geometric torchaudio torchrec torchtune torchvision torchx
		tornado tox trace tracemalloc traitlets triton trl tty turtle turtledemo twisted
		typer typing ultralytics unittest unsloth urllib urllib3 usercustomize uu uuid uvicorn venv
		wandb warnings wave weakref webbrowser wheel wsgiref xarray xgboost xml xmlrpc yaml zenml zipapp
		zipfile zipimport zmq zope`)
	for _, name := range vocabulary.Packages() {
		names[name] = true
	}
	return names
}()

// isNarrow reports whether an entry for a top-level package permits what the
// package defines. A package with an accelerator in C, such as _pickle, is as
// wide as that.
func isNarrow(top string) bool {
	return !wide[top] && !wide["_"+top] && !wide["_py"+top]
}
